"""Every error a user can meet, and the exit code the command line gives it.

A message says what is wrong, why, and what to do; it is shown as it stands.
"""


class MarlctlError(Exception):
    """Something the user can understand and mend."""

    exit_code = 1


class ConfigError(MarlctlError):
    """A name, option or combination that cannot work."""

    exit_code = 2


class FileError(MarlctlError):
    """A file that is damaged, foreign or of another format."""

    exit_code = 3


class PluginError(MarlctlError):
    """A plugin that cannot be loaded, or that breaks its contract."""

    exit_code = 4


class BusyError(MarlctlError):
    """A run folder that another process is using."""

    exit_code = 5


class DivergedError(MarlctlError):
    """Training that produced a number which is not finite."""

    exit_code = 6


class LearnersError(MarlctlError):
    """Too few learners answered for a round to be decoded."""

    exit_code = 7


class StorageError(MarlctlError):
    """A disk that is full, read-only or failing."""

    exit_code = 8
