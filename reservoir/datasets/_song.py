"""Synthesised popular music, in which a few patterns recur with small variations."""

from __future__ import annotations

from math import ceil, pi
from typing import NamedTuple

import numpy as np

from reservoir._typing import Array, RandomState
from reservoir._validation import as_generator, check_count, check_number

_SCALE = (0, 2, 4, 5, 7, 9, 11)  # semitones of the major scale above its first note
_CHORDS = (0, 1, 3, 4, 5)  # roots of the chords, as steps of the scale: I, ii, IV, V, vi
_BARS = 4  # per section
_EIGHTHS = 8  # per bar
_LATE = 0.005  # s, standard deviation of the time at which a note begins
_HARMONICS = 12


class _Voice(NamedTuple):
    """An instrument: its loudness, the weights of its harmonics, and the decay time of a note.

    `weights` has shape (n_harmonics,); `decay` is for the first harmonic, in seconds.
    """

    loudness: float
    weights: Array
    decay: float

    @classmethod
    def drawn(cls, loudness: float, decay: float, rng: np.random.Generator) -> _Voice:
        """Return an instrument with random harmonics and decay."""
        falls = rng.uniform(1.0, 2.5)
        weights = rng.uniform(0.3, 1.0, _HARMONICS) / np.arange(1, _HARMONICS + 1) ** falls
        return cls(loudness, weights / np.linalg.norm(weights), decay * rng.uniform(0.7, 1.4))


class _Section(NamedTuple):
    """Four bars that recur in a song: chords and a melody.

    `melody` is a list of (start, length, step of the scale); start and length are in eighths of a
    bar.
    """

    chords: Array
    melody: list[tuple[int, int, int]]

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> _Section:
        """Return four different chords, and a melody that wanders along the scale."""
        melody, start, step = [], 0, int(rng.integers(7))
        while start < _BARS * _EIGHTHS:
            length = min(int(rng.choice([1, 2, 4], p=[0.4, 0.45, 0.15])), _BARS * _EIGHTHS - start)
            step = int(np.clip(step + rng.integers(-2, 3), -2, 9))
            if rng.random() < 0.85:  # else a rest
                melody.append((start, length, step))
            start += length
        return cls(rng.permutation(_CHORDS)[:_BARS], melody)


def song(
    n_samples: int,
    *,
    rate: float = 22050.0,
    variation: float = 0.2,
    drums: bool = True,
    random_state: RandomState = None,
) -> Array:
    """Generate popular music: two alternating sections with melody, chords, bass and drums.

    Verse and chorus alternate and have four bars each. They recur with the same chords, bass and
    rhythm, but some notes of the melody change. So a missing passage is similar to another passage:
    the task is to fill gaps in the spectrogram, as in [1]_.

    Parameters
    ----------
    n_samples : int
        Number of rows returned; ``60 * 22050`` rows are a minute.
    rate : float >= 4000, samples per second, default=22050.0
        Sampling rate.
    variation : float in [0, 1], default=0.2
        Share of the melody's notes that are moved by one or two steps of the scale. These notes are
        drawn again each time a section recurs.
    drums : bool, default=True
        Whether to include drums: bass drum, snare and cymbal.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the piece: tempo (80 to 140 quarter notes per minute), key, instruments, sections,
        and the loudness and timing of each note. With None a new piece is drawn at each call.

    Returns
    -------
    x : ndarray of shape (n_samples, 1)
        The sound. Its largest absolute value is 1, unless there are so few samples that all of them
        are 0.

    Raises
    ------
    ValueError, TypeError
        If a parameter is outside its range.

    Notes
    -----
    A note is a sum of up to 12 harmonics below half the sampling rate; higher harmonics are weaker
    and decay faster. Each note has a random loudness (log-normal, standard deviation 20 %) and
    begins some milliseconds early or late (normal, standard deviation 5 ms). Snare and cymbal are
    bursts of noise, which are drawn again each time. The pieces of
    [1]_ are six recordings, from rock to Chopin, of which it states that "pop music is often a
    combination of few melodic and harmonic patterns, repeated in time". The rest is our choice.

    References
    ----------
    .. [1] Bay (2017), "Recurrent neural networks: methods and applications to non-linear
       predictions", PhD thesis, Politecnico di Torino, chapter 8.

    Examples
    --------
    >>> from scipy.signal import stft
    >>> from reservoir.datasets import song
    >>> x = song(44_100, random_state=0)
    >>> x.shape
    (44100, 1)
    >>> frequencies, seconds, values = stft(x[:, 0], fs=22050, nperseg=256)
    >>> abs(values).shape  # frequencies, times
    (129, 346)
    """
    n_samples = check_count("n_samples", n_samples, size=2)
    rate = check_number("rate", rate, low=4000)
    variation = check_number("variation", variation, low=0, high=1)
    if not isinstance(drums, (bool, np.bool_)):
        raise TypeError(f"drums={drums!r} must be True or False.")
    rng = as_generator(random_state)
    eighth = 30.0 / rng.uniform(80.0, 140.0)  # s
    tonic = 48 + int(rng.integers(12))  # MIDI note number: 60 is middle C
    voices = [_Voice.drawn(*pair, rng) for pair in ((1.0, 0.5), (0.35, 0.8), (0.8, 0.4))]
    sections = [_Section.drawn(rng) for _ in range(2)]
    length = _BARS * _EIGHTHS * eighth
    x = np.zeros(n_samples)
    for k in range(ceil(n_samples / (rate * length))):
        section = sections[k % 2]
        for voice, start, duration, note in _score(section, 0.0 if k < 2 else variation, rng):
            begins = k * length + start * eighth
            pitch = 440.0 * 2.0 ** ((tonic + note - 69) / 12)
            _add(x, begins, rate, _tone(voices[voice], pitch, duration * eighth, rate), rng)
        for eighths in range(_BARS * _EIGHTHS if drums else 0):
            for hit in _struck(eighths % _EIGHTHS, rate, rng):
                _add(x, k * length + eighths * eighth, rate, hit, rng)
    loudest = np.abs(x).max()
    return (x / (loudest or 1.0))[:, None]


def _score(
    section: _Section, variation: float, rng: np.random.Generator
) -> list[tuple[int, float, float, int]]:
    """Return the notes of a section as (voice, start, length, semitones above the key's tonic).

    Start and length are in eighths; the voices are 0 (melody), 1 (chords) and 2 (bass).
    """
    notes: list[tuple[int, float, float, int]] = []
    for start, duration, step in section.melody:
        moved = int(rng.choice([-2, -1, 1, 2])) if rng.random() < variation else 0
        notes.append((0, start, duration, 12 + _semitones(step + moved)))
    for bar, chord in enumerate(section.chords):
        first = bar * _EIGHTHS
        for beat in (0, 4):
            notes += [(1, first + beat, 4, _semitones(int(chord) + up)) for up in (0, 2, 4)]
        notes += [(2, first + beat, 2, _semitones(int(chord)) - 12) for beat in (0, 2, 4, 6)]
    return notes


def _semitones(step: int) -> int:
    """Return the semitones from the tonic to a step of the scale, in any octave."""
    octave, within = divmod(step, 7)
    return 12 * octave + _SCALE[within]


def _tone(voice: _Voice, pitch: float, duration: float, rate: float) -> Array:
    """Return a note of `duration` seconds that rises within 5 ms and fades in its last 20 ms."""
    t = np.arange(max(1, int(duration * rate))) / rate
    h = np.arange(1, _HARMONICS + 1)[:, None]
    h = h[: max(1, int(np.ceil(0.5 * rate / pitch)) - 1)]  # none above half the rate
    waves = np.sin(2.0 * pi * pitch * h * t) * np.exp(-t * (1.0 + 0.3 * (h - 1)) / voice.decay)
    shape = np.minimum(np.minimum(t / 0.005, (duration - t) / 0.02), 1.0)
    return np.asarray(voice.loudness * shape * (voice.weights[: len(h)] @ waves))


def _struck(eighth: int, rate: float, rng: np.random.Generator) -> list[Array]:
    """Return the drums of an eighth: always cymbal, bass drum on beats 1, 3 and snare on 2, 4."""
    t = np.arange(int(0.25 * rate)) / rate
    noise = rng.standard_normal((2, len(t)))
    hits = [0.15 * np.diff(noise[0], prepend=0.0) * np.exp(-t / 0.02)]
    if eighth % 4 == 0:
        falling = np.sin(2.0 * pi * (50.0 * t - 3.0 * np.exp(-t / 0.03)))  # to 50 Hz
        hits.append(1.2 * falling * np.exp(-t / 0.08))
    elif eighth % 4 == 2:
        hits.append((0.3 * noise[1] + 0.4 * np.sin(2.0 * pi * 180.0 * t)) * np.exp(-t / 0.06))
    return hits


def _add(x: Array, begins: float, rate: float, sound: Array, rng: np.random.Generator) -> None:
    """Add a sound in place with random timing and loudness; parts beyond the end are cut off."""
    late, louder = _LATE * rng.standard_normal(), np.exp(0.2 * rng.standard_normal())
    first = max(0, round((begins + late) * rate))
    room = x[first : first + len(sound)]
    room += louder * sound[: len(room)]
