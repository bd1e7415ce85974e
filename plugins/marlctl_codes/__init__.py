"""Coding schemes after Wang, Xie and Atanasov, "Coding for Distributed Multi-Agent Reinforcement Learning" (2021)."""

from marlctl_codes.ldpc import LDPC
from marlctl_codes.mds import MDS, Vandermonde
from marlctl_codes.plain import Replication, Uncoded
from marlctl_codes.sparse import RandomSparse

__all__ = ["LDPC", "MDS", "RandomSparse", "Replication", "Uncoded", "Vandermonde"]
