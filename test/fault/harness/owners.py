"""What each owner (the dqd whose token a claim wrote) was doing, by the audit table: a silent owner was stalled, for
whatever reason. Times are microseconds on the steady clock."""
import datetime
from collections import defaultdict

SECOND = 1_000_000
# A result is recorded within this time after its handler's end, unless its owner is stalled; and a runner notices
# within this time that its poller was killed. A slow machine takes longer.
SOON_US = SECOND
RUNNING, CANCELLED = "3", "4"


def utc_us(text):
    at = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return round(at.timestamp() * SECOND)


class Owners:
    """offset_us: the database's clock minus the steady one."""

    def __init__(self, trial, history, offset_us):
        self._soon_us = SOON_US * trial.slowness()
        self._owner, self._lease_us, self._lease_end, self._work = {}, {}, {}, defaultdict(list)
        for task, at, old_version, version, old_status, status, old_token, token, old_lease, lease in trial.sql(
            "SELECT id, at, old_version, version, old_status, status, HEX(old_token), HEX(token), old_lease, lease"
            " FROM dq_audit ORDER BY n"
        ):
            task, at = int(task), utc_us(at) - offset_us
            if status == RUNNING:
                self._owner[task, int(version)] = token
                self._lease_us[task, int(version)] = utc_us(lease) - offset_us - at
                self._work[token].append(at)
            elif old_status == RUNNING:
                self._lease_end[task, int(old_version)] = utc_us(old_lease) - offset_us
                by_others = history.get((task, int(old_version)), [""])[0] == "lease-expired" or status == CANCELLED
                if not by_others:
                    self._work[old_token].append(at)

    def _silence_us(self, a, begin, end):
        """The longest time between begin and end in which the owner of attempt a changed nothing."""
        work = [at for at in self._work[self._owner[a.id, a.token]] if begin < at < end]
        return max(late - early for early, late in zip([begin, *work], [*work, end]))

    def life(self, a):
        """What the audit table says of attempt a and its owner."""
        lease_us, end = self._lease_us[a.id, a.token], self._lease_end.get((a.id, a.token))
        ran = f"{(a.end - a.start) / SECOND:.3f} s" if a.end else "not to its end"
        if end is None:
            return f"attempt {a.attempt} ran {ran}, and has its lease still"
        silence = self._silence_us(a, end - lease_us, end)
        return (
            f"attempt {a.attempt} ran {ran}; its lease ended {(end - a.start) / SECOND:.3f} s after the start, and its"
            f" owner changed nothing for {silence / SECOND:.3f} s of the last {lease_us / SECOND:g} s"
        )

    def in_flight(self, a, at):
        """Whether a kill of its dqd at that time explains the loss of attempt a: it was running, its result
        had not been recorded, or the runner started it before it noticed that its poller was gone."""
        return a.start <= at + self._soon_us and (
            a.end is None or at <= a.end + self._soon_us + self._silence_us(a, a.end, at)
        )

    def stalled(self, a, killed_at=None):
        """Whether the owner lost attempt a because it was stalled while it lived: renewals are due every
        third of a lease, before anything else that changes rows. An owner that changed other rows but did
        not renew is not excused."""
        lease_us, end = self._lease_us[a.id, a.token], self._lease_end.get((a.id, a.token))
        return end is not None and self._silence_us(a, end - lease_us, min(end, killed_at or end)) > lease_us / 4
