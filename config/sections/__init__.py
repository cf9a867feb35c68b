"""The sections of the settings, a module each."""
