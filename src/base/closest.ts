/**
 * Returns the candidate with the smallest edit distance to `word`, ignoring case, for "did you
 * mean …?". Returns undefined if each differs in more than 40 % of the longer word, because a wild
 * guess misleads. Of equally close candidates, the one closest in case wins, then the first.
 */
export function closest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Infinity;
  let bestExact = Infinity;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    const tolerance = 0.4 * Math.max(word.length, candidate.length);
    if (distance > bestDistance || distance > tolerance) continue;
    const exact = editDistance(word, candidate);
    if (distance === bestDistance && exact >= bestExact) continue;
    best = candidate;
    bestDistance = distance;
    bestExact = exact;
  }
  return best;
}

/**
 * Optimal string alignment distance: the number of insertions, deletions, substitutions and swaps
 * of neighbors that turn `a` into `b`. A swap, the most common typing error, counts once.
 */
function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let distance = Math.min(previous[j]! + 1, current[j - 1]! + 1, substitution);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, beforePrevious[j - 2]! + 1);
      }
      current.push(distance);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}
