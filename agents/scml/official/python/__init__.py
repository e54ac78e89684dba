"""An agent for the Standard league of SCML, exported by onnxrl: see README.md."""

__all__ = ["LitaAgentHRL", "TrackedLitaAgentHRL"]


def __getattr__(name):
    # Replaying needs no scml, so it is imported with the class that does.
    if name == "LitaAgentHRL":
        from .agent import LitaAgentHRL
        return LitaAgentHRL
    if name == "TrackedLitaAgentHRL":
        from .tracker import TrackedLitaAgentHRL
        return TrackedLitaAgentHRL
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
