raise ImportError("No module named 'gymnasium'")
