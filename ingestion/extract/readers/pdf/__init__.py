"""PDF: its text layer, the layout and the outline of its pages, and OCR for scans."""
