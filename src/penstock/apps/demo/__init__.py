"""What the demos of applications share: stages on a screen, traffic, a kill -9, a checked report."""

from penstock.apps.demo.comparison import Comparison
from penstock.apps.demo.demo import Demo
from penstock.apps.demo.report import Report
from penstock.apps.demo.work import Figures, Process, Work

__all__ = ["Comparison", "Demo", "Figures", "Process", "Report", "Work"]
