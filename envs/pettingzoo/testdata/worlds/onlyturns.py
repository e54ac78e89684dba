from toyworlds import env  # noqa: F401
