"""Echo state networks for people who use scikit-learn."""

__version__ = "0.1.0.dev0"
