"""An agent for the Standard league of SCML, exported by onnxrl: see README.md."""

__all__ = ["LitaAgentHRL"]


def __getattr__(name):
    # Replaying needs no scml, so it is imported with the class that does.
    if name == "LitaAgentHRL":
        from .agent import LitaAgentHRL
        return LitaAgentHRL
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
