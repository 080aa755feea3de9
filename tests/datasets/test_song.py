"""Songs: sections recur, their notes vary by the given amount, and no harmonic is aliased."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import stft

from reservoir.datasets import song

RATE, HOP = 4000, 256
FRAMES = RATE / HOP  # a second


def spectrogram(seconds, **keywords):
    x = song(seconds * RATE, rate=RATE, **keywords)
    assert x.shape == (seconds * RATE, 1)
    assert np.abs(x).max() == 1.0
    return np.abs(stft(x[:, 0], nperseg=1024, noverlap=1024 - HOP)[2]).T


def returns(S):
    """Return the lag, in seconds, at which a song resembles itself most, and how much."""
    S = S / np.linalg.norm(S, axis=1, keepdims=True).clip(1e-12)
    lags = np.arange(int(13 * FRAMES), int(25 * FRAMES))
    alike = [np.mean(np.sum(S[lag:] * S[:-lag], axis=1)) for lag in lags]
    return lags[np.argmax(alike)] / FRAMES, max(alike)


def test_verse_and_chorus_return(global_random_seed):
    # 8 bars, of 4 quarter notes each, at 80 to 140 a minute
    period, alike = returns(
        spectrogram(50, variation=0.0, drums=False, random_state=global_random_seed)
    )
    assert period + 0.1 >= 32 * 60 / 140
    assert period - 0.1 <= 32 * 60 / 80
    assert alike > 0.9
    other_period, varied = returns(
        spectrogram(50, variation=1.0, drums=False, random_state=global_random_seed)
    )
    assert other_period == pytest.approx(period, abs=0.1)
    assert 0.5 < varied < alike - 0.05


@pytest.mark.slow
def test_more_varies_as_the_share_grows():
    shares = [0.0, 0.2, 0.6, 1.0]
    alike = [returns(spectrogram(50, variation=s, random_state=3))[1] for s in shares]
    assert (np.diff(alike) < 0).all()


def test_drums_are_noise_between_the_harmonics(global_random_seed):
    # flatness: the geometric mean of the power over its mean; 1 for white noise, 0 for a tone
    flatness = []
    for drums in (False, True):
        power = spectrogram(20, drums=drums, random_state=global_random_seed)[5:-5, 1:] ** 2
        flatness.append(np.mean(np.exp(np.log(power + 1e-12).mean(axis=1)) / power.mean(axis=1)))
    assert flatness[1] > 3 * flatness[0]


def test_no_harmonic_folds_back():
    # what is sampled at twice the rate has the same melody below half the lower rate
    fine = song(20 * 2 * RATE, rate=2 * RATE, drums=False, random_state=5)[:, 0]
    coarse = song(20 * RATE, rate=RATE, drums=False, random_state=5)[:, 0]
    power = np.abs(np.fft.rfft(fine)) ** 2
    low = np.abs(np.fft.rfft(coarse)) ** 2
    n = len(low) - 1
    bands = [p[:n].reshape(8, -1).sum(axis=1) for p in (power, low)]
    shares = [band / band[0] for band in bands]
    np.testing.assert_allclose(shares[0], shares[1], rtol=0.1)


def test_errors():
    with pytest.raises(ValueError, match="n_samples=0 must be at least 1"):
        song(0)
    with pytest.raises(ValueError, match=r"rate=100 must be finite and in \[4000"):
        song(10, rate=100)
    with pytest.raises(ValueError, match=r"variation=2 must be finite and in \[0, 1\]"):
        song(10, variation=2)
    with pytest.raises(TypeError, match="drums='no' must be True or False"):
        song(10, drums="no")
