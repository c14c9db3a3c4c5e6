/** Part of a run: days of the calendar, or a length at its start or end. */
export interface Period {
  /** First and last day, such as `2020-03-01`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly relative?: {
    readonly end: 'first' | 'last';
    readonly months: number;
    readonly days: number;
    readonly isLeftOut: boolean;
  };
}

export interface Days {
  readonly from: string;
  readonly to: string;
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
export const MONTH_NAME =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?';
const YEAR = '(?:19|20)\\d\\d';
const OF = '(?:, |of |in )?(?:the year )?';
/** Ordered by length, because the first alternative that fits is taken. */
const POINTS = [
  `${YEAR}-[01]\\d-[0-3]\\d`,
  `${YEAR}-[01]\\d`,
  `(?:${MONTH_NAME}) [0-3]?\\d(?:th)? (?:, )?${YEAR}`,
  `[0-3]?\\d(?:th)? (?:of )?(?:${MONTH_NAME}) (?:, )?${YEAR}`,
  `(?:${MONTH_NAME}) ${OF}${YEAR}`,
  `(?:q[1-4]|(?:first|last|[234]th) quarter) ${OF}${YEAR}`,
  `${YEAR} q[1-4]`,
  '(?:19|20)\\d0 s',
  `(?:h[12]|(?:first|last|2th) half) ${OF}${YEAR}`,
  YEAR,
].join('|');
const UNITS: Readonly<Record<string, readonly [months: number, days: number]>> = {
  day: [0, 1],
  week: [0, 7],
  month: [1, 0],
  quarter: [3, 0],
  year: [12, 0],
};
const RUN = '(?: (?:of|in) the (?:test|run|backtest|data|sample|simulation|history|period))?';
const EXCEPT = 'without|excluding|except|except for|ignoring|leaving out|not counting|but';

type Read = (found: readonly (string | undefined)[]) => Period;

/** Phrases that name days, and how each is read. */
export const PERIOD_PHRASES: readonly (readonly [pattern: string, read: Read])[] = [
  [
    `(?:from |since |in |for |of |during )?(?:the start of )?(${POINTS}) (?:to|until|till|through|thru|-) (?:the )?(?:end of )?(${POINTS})`,
    ([, a, b]) => ({ from: edges(a!)[0], to: edges(b!)[1] }),
  ],
  [`between (${POINTS}) and (${POINTS})`, ([, a, b]) => ({ from: edges(a!)[0], to: edges(b!)[1] })],
  [
    `(?:since|starting in|starting from) (?:the )?(?:(?:start|beginning) of )?(${POINTS})(?: on| onwards?)?`,
    ([, a]) => ({ from: edges(a!)[0] }),
  ],
  [`from (${POINTS}) (?:on|onwards?)`, ([, a]) => ({ from: edges(a!)[0] })],
  [`after (?:the end of )?(${POINTS})`, ([, a]) => ({ from: shifted(edges(a!)[1], 0, 1) })],
  [
    `(?:before|prior to) (?:the (?:start|beginning) of )?(${POINTS})`,
    ([, a]) => ({ to: shifted(edges(a!)[0], 0, -1) }),
  ],
  [
    `(?:up to|until|till|through) (?:the )?(?:end of )?(${POINTS})`,
    ([, a]) => ({ to: edges(a!)[1] }),
  ],
  [
    `(?:in |on |for |of |from |during |within |over |throughout )?(?:all of )?(?:the )?(?:calendar )?(?:year )?(${POINTS})`,
    ([, a]) => ({ from: edges(a!)[0], to: edges(a!)[1] }),
  ],
  [
    `(?:(${EXCEPT}) )?(?:in |over |of |during |for |within )?(?:the )?(?:very )?(last|past|final|first) (?:(\\d{1,3}) )?(day|week|month|quarter|year)s?${RUN}`,
    relativePeriod,
  ],
];

function relativePeriod([, without, end, count = '1', unit]: readonly (
  | string
  | undefined
)[]): Period {
  const [months, days] = UNITS[unit!]!;
  return {
    relative: {
      end: end === 'first' ? 'first' : 'last',
      months: months * Number(count),
      days: days * Number(count),
      isLeftOut: without !== undefined,
    },
  };
}

/** First and last day of a day, month, quarter, half or year. */
function edges(point: string): readonly [string, string] {
  const year = new RegExp(YEAR).exec(point)![0];
  if (/^\d{4}-\d\d-\d\d$/.test(point)) return [point, point];
  if (point.endsWith(' s')) return [`${year}-01-01`, `${Number(year) + 9}-12-31`];
  const months = (first: number, count: number): readonly [string, string] => {
    const from = `${year}-${String(first).padStart(2, '0')}-01`;
    return [from, shifted(from, count, -1)];
  };
  const [, quarter] = /(?:^| )q?([1-4]|first|last)(?:th)?(?: quarter|(?= )|$)/.exec(point) ?? [];
  if (/quarter|\bq\d/.test(point)) return months(3 * placeOf(quarter!, 4) - 2, 3);
  const [, half] = /h?([12]|first|last)/.exec(point) ?? [];
  if (/half|\bh\d/.test(point)) return months(6 * placeOf(half!, 2) - 5, 6);
  const name = new RegExp(`\\b(?:${MONTH_NAME})\\b`).exec(point)?.[0];
  const month = name === undefined ? /-(\d\d)$/.exec(point)?.[1] : monthNumber(name);
  if (month === undefined) return [`${year}-01-01`, `${year}-12-31`];
  const [, day] = /(?:^| )([0-3]?\d)(?:th)?(?= )/.exec(point) ?? [];
  const first = months(Number(month), 1);
  if (day === undefined) return first;
  const exact = `${first[0].slice(0, 8)}${day.padStart(2, '0')}`;
  return [exact, exact];
}

function placeOf(word: string, last: number): number {
  return word === 'first' ? 1 : word === 'last' ? last : Number(word);
}

/** 1 for any form of `january`. */
export function monthNumber(name: string): number {
  return MONTHS.indexOf(name.slice(0, 3)) + 1;
}

/** Another day. A day that its month lacks becomes the last day of that month. */
function shifted(from: string, months: number, days: number): string {
  const date = new Date(`${from.slice(0, 7)}-01T00:00:00Z`);
  const first = date.getUTCMonth() + months;
  const last = new Date(Date.UTC(date.getUTCFullYear(), first + 1, 0)).getUTCDate();
  const on = Math.min(Number(from.slice(8, 10)), last) + days;
  return new Date(Date.UTC(date.getUTCFullYear(), first, on)).toISOString().slice(0, 10);
}

/** The days of a period within a run. `from` is after `to` if the run has no such days. */
export function daysOf(
  { from, to, relative }: Period,
  { window }: { readonly window: Days },
): Days {
  const whole = { from: window.from.slice(0, 10), to: window.to.slice(0, 10) };
  if (relative === undefined) {
    return {
      from: from === undefined || from < whole.from ? whole.from : from,
      to: to === undefined || to > whole.to ? whole.to : to,
    };
  }
  const { end, months, days, isLeftOut } = relative;
  if (end === 'first') {
    const edge = shifted(whole.from, months, days);
    return isLeftOut ? { ...whole, from: edge } : { ...whole, to: shifted(edge, 0, -1) };
  }
  const edge = shifted(whole.to, -months, -days);
  return isLeftOut ? { ...whole, to: edge } : { ...whole, from: shifted(edge, 0, 1) };
}

/**
 * Calendar months between two instants: whole ones, and the part of the last one that has passed. More
 * than 2 means later than the same day two months on.
 */
export function monthsBetween(from: string, to: string): number {
  const end = Date.parse(to);
  const after = (months: number): number =>
    Date.parse(`${shifted(from.slice(0, 10), months, 0)}${from.slice(10)}`);
  let whole = 0;
  while (after(whole + 1) <= end) whole += 1;
  return whole + (end - after(whole)) / (after(whole + 1) - after(whole));
}
