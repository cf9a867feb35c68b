"""Adapters: the interfaces of other systems (Genie Flow, FAQ, DeepPavlov Dream, CrateDB tables)."""
