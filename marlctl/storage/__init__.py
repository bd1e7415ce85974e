"""What a run leaves on disk, so that a crash, a full disk or a hostile file never costs more than one save.

`files` writes files that are whole or not there, `hdf5` is the one gate that opens HDF5, `foreign`
looks into files of unknown origin, `segments` stores replay piece by piece, `checkpoint` commits it all.
"""
