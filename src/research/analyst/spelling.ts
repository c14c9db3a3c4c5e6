import { closest } from '../../base/closest.ts';

/** Words of the field that are corrected: words that few other words resemble. */
const WORDS = (
  'sharpe sortino calmar drawdown drawdowns volatility return returns returned profit profits profitable ' +
  'winning winner winners losing loser losers losses average median trades trade longest shortest biggest ' +
  'largest smallest consecutive streak streaks expectancy exposure turnover commission commissions ' +
  'slippage equity percent percentage quarter monthly yearly annual duration holding period benchmark ' +
  'january february march april august september october november december monday tuesday wednesday ' +
  'thursday friday saturday sunday doubled versus compare correlation kelly worst average total performance'
).split(' ');

/** Shorter words resemble too many others. */
const SHORTEST = 5;

/** Words that resemble one of the field but mean something else. */
const OTHERS = new Set(
  (
    'winter trader traders traded trace traces tracing looser shape sharper sharply shared marsh matches ' +
    'larger lasts longer shorter worse worth return profile profit totally comparer compares compared ' +
    'holidays holdings periodic periods quarters quarterly averages averaged medians medium percents ' +
    'exposed exposes closes turnovers match share stream streams sorting media double doubles'
  ).split(' '),
);

/**
 * Corrects a word that differs from a word of the field in one letter and starts with the same letter.
 * Returns undefined for other words.
 */
export function correctSpelling(word: string): string | undefined {
  if (word.length < SHORTEST || OTHERS.has(word) || WORDS.includes(word) || !/^[a-z]+$/.test(word))
    return undefined;
  const near = WORDS.filter(
    (known) => known[0] === word[0] && Math.abs(known.length - word.length) <= 1,
  );
  const meant = closest(word, near);
  return meant !== undefined && isOneEditAway(word, meant) ? meant : undefined;
}

/** Whether one letter is added, missing, different or swapped with its neighbor. */
function isOneEditAway(a: string, b: string): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  const [rest, other] = [a.slice(start), b.slice(start)];
  return (
    rest.slice(1) === other ||
    rest === other.slice(1) ||
    rest.slice(1) === other.slice(1) ||
    (rest.slice(2) === other.slice(2) && rest[0] === other[1] && rest[1] === other[0])
  );
}
