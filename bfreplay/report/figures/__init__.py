"""Every figure: what one is and which there are (``figure``), a module a family, and what they share."""
