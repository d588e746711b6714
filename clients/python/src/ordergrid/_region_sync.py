"""A region for the plain client: AsyncRegion, called from any thread."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Optional, Protocol, TypeVar

from .log import Receipt
from .regions import AsyncRegion, Entry, Taken

_T = TypeVar("_T")


class _Run(Protocol):
    def __call__(self, work: Awaitable[_T]) -> _T: ...


class Region:
    """A named map of keys to values in the partitions of a grid; safe for any number of threads. Client.region makes it.

    What each method does, and raises: AsyncRegion.
    """

    def __init__(self, region: AsyncRegion, run: _Run) -> None:
        self._region, self._run = region, run
        self.name = region.name

    def put(
        self, key: bytes, value: bytes, *, expires: Optional[float] = None, forever: bool = False, timeout: Optional[float] = None
    ) -> Receipt:  # fmt: skip
        """Sets a value; seq of the receipt is its version."""
        return self._run(self._region.put(key, value, expires=expires, forever=forever, timeout=timeout))

    def put_if(
        self, key: bytes, value: bytes, version: int, *, expires: Optional[float] = None, forever: bool = False,
        timeout: Optional[float] = None,
    ) -> Receipt:  # fmt: skip
        """Sets a value if the present one has this version, 0: if there is none; otherwise ConditionFailed."""
        return self._run(self._region.put_if(key, value, version, expires=expires, forever=forever, timeout=timeout))

    def patch(self, key: bytes, offset: int, data: bytes, *, timeout: Optional[float] = None) -> Receipt:
        """Writes data over the value's bytes from offset on, which may be its end."""
        return self._run(self._region.patch(key, offset, data, timeout=timeout))

    def remove(self, key: bytes, *, timeout: Optional[float] = None) -> bool:
        """Removes a key. Returns whether it had a value."""
        return self._run(self._region.remove(key, timeout=timeout))

    def take(self, key: bytes, *, timeout: Optional[float] = None) -> Taken:
        """Removes a key and returns its value, once. NotFound: there is none."""
        return self._run(self._region.take(key, timeout=timeout))

    def clear(self, *, timeout: Optional[float] = None) -> None:
        """Removes all keys: at once in each partition, in one after the other."""
        self._run(self._region.clear(timeout=timeout))

    def clear_partition(self, partition: int, *, timeout: Optional[float] = None) -> None:
        """Removes the keys that are in a partition, at once."""
        self._run(self._region.clear_partition(partition, timeout=timeout))

    def get(self, key: bytes, *, mode: int = 1, timeout: Optional[float] = None) -> Entry:
        """Reads the value of a key; mode is a ReadMode. NotFound: there is none."""
        return self._run(self._region.get(key, mode=mode, timeout=timeout))

    def scan(self, prefix: bytes = b"", *, mode: int = 1, timeout: Optional[float] = None) -> Iterator[Entry]:
        """The entries whose keys begin with prefix, partition by partition, page by page."""
        for partition in range(self._region.partitions):
            behind: Optional[bytes] = None
            while behind != b"":
                entries, behind = self._run(self._region.page(partition, prefix, behind, mode=mode, timeout=timeout))
                yield from entries
