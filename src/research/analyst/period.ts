import { formatPercent } from '../../base/format.ts';
import { botOf, cite, citeCell, day, missing, runOf, type Facts, type Run } from './facts.ts';
import { withoutIds, type Prompt } from './prompt.ts';
import { reply, type OfPeriod, type Reply } from './question.ts';
import { curveOf, EQUITY_COLUMN, rowOf, type Curve } from './table.ts';

/** Part of a run, as somebody says it: days of the calendar, or so much of its end or its start. */
export interface Period {
  /** The words that say it. */
  readonly said: string;
  /** First and last day, as `2020-03-01`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly relative?: {
    readonly end: 'first' | 'last';
    readonly months: number;
    readonly days: number;
    readonly isLeftOut: boolean;
  };
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const MONTH =
  'jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?';
const YEAR = '(?:19|20)\\d\\d';
const EXACT = `${YEAR}-[01]\\d-[0-3]\\d|${YEAR}-[01]\\d(?!\\d)|(?:${MONTH})\\.?,? (?:of |in )?${YEAR}`;
const POINT = `(${EXACT}|${YEAR})(?![\\d-])`;
const NUMBERS = 'one two three four five six seven eight nine ten'.split(' ');

const RANGE = new RegExp(
  `\\b(?:(?:from|since|between) )?${POINT} ?(?:to|until|till|through|-|–|—|(?<=between .*)and) ?(?:the end of )?${POINT}`,
);
const SIDE = new RegExp(
  `\\b(since|from|after|before|until|till|up to) (?:the (?:end|start|beginning) of )?${POINT}`,
);
const SINGLE = new RegExp(`\\b(?:(?:in|on|of|during|for) )?(${EXACT})(?![\\d-])`);
const RELATIVE = new RegExp(
  `\\b(?:(without|excluding|except(?: for)?|ignoring|leaving out|but) )?(?:in |over |of |during |for )?(?:the )?(last|past|first) (?:(\\d{1,3}|${NUMBERS.join('|')}) )?(day|week|month|quarter|year)s?\\b`,
);
const LENGTHS: Readonly<Record<string, readonly [months: number, days: number]>> = {
  day: [0, 1],
  week: [0, 7],
  month: [1, 0],
  quarter: [3, 0],
  year: [12, 0],
};

/** Of single years nothing: those are for questions about years. */
export function periodIn({ text }: Prompt): Period | undefined {
  const plain = withoutIds(text).toLowerCase().replaceAll(/\s+/g, ' ');
  const range = RANGE.exec(plain);
  if (range !== null) {
    return { said: range[0], from: edges(range[1]!)[0], to: edges(range[2]!)[1] };
  }
  const side = SIDE.exec(plain);
  if (side !== null) {
    const [first, last] = edges(side[2]!);
    const bounds = {
      since: { from: first },
      from: { from: first },
      after: { from: shifted(last, 0, 1) },
      before: { to: shifted(first, 0, -1) },
    };
    return { said: side[0], ...(bounds[side[1] as keyof typeof bounds] ?? { to: last }) };
  }
  const single = SINGLE.exec(plain);
  if (single !== null) {
    const [from, to] = edges(single[1]!);
    return { said: single[0], from, to };
  }
  const relative = RELATIVE.exec(plain);
  if (relative === null) return undefined;
  const [said, without, end, count = 'one', unit] = relative;
  const times = NUMBERS.includes(count) ? NUMBERS.indexOf(count) + 1 : Number(count);
  const [months, days] = LENGTHS[unit!]!;
  return {
    said,
    relative: {
      end: end === 'first' ? 'first' : 'last',
      months: months * times,
      days: days * times,
      isLeftOut: without !== undefined,
    },
  };
}

/** That of the one year that is named. */
export function yearIn({ years }: Prompt): Period | undefined {
  const [year, other] = [...new Set(years)];
  if (year === undefined || other !== undefined) return undefined;
  const [from, to] = edges(String(year));
  return { said: String(year), from, to };
}

/** First and last day of a year, a month or a day. */
function edges(point: string): readonly [string, string] {
  const year = /(?:19|20)\d\d/.exec(point)![0];
  if (/^\d{4}-\d\d-\d\d$/.test(point)) return [point, point];
  const named = MONTHS.indexOf(point.slice(0, 3));
  const month = named === -1 ? /^\d{4}-(\d\d)$/.exec(point)?.[1] : String(named + 1);
  if (month === undefined) return [`${year}-01-01`, `${year}-12-31`];
  const from = `${year}-${month.padStart(2, '0')}-01`;
  return [from, shifted(from, 1, -1)];
}

/** Another day; of `2020-02-30` and such it makes what it can. */
function shifted(from: string, months: number, days: number): string {
  const date = new Date(`${from.slice(0, 7)}-01T00:00:00Z`);
  const first = date.getUTCMonth() + months;
  const last = new Date(Date.UTC(date.getUTCFullYear(), first + 1, 0)).getUTCDate();
  const on = Math.min(Number(from.slice(8, 10)), last) + days;
  return new Date(Date.UTC(date.getUTCFullYear(), first, on)).toISOString().slice(0, 10);
}

interface Days {
  readonly from: string;
  readonly to: string;
}

/** As far as the run has them. */
export function daysOf({ from, to, relative }: Period, run: Run): Days {
  const { window } = run.result.data;
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
 * Of the equity at the closes of those days.
 * @throws ServiceError `not_found` where the run has no such days.
 */
export async function tellPeriod(facts: Facts, period: Period, what: OfPeriod): Promise<Reply> {
  const run = await runOf(facts);
  const { from, to } = daysOf(period, run);
  const curve = await curveOf(facts, run);
  const after = curve.time.findIndex((time) => time.slice(0, 10) > to);
  const last = (after === -1 ? curve.time.length : after) - 1;
  const first = curve.time.findIndex((time) => time.slice(0, 10) >= from);
  if (first === -1 || last < first || from > to) {
    throw missing(`there are no bars from ${from} to ${to} in ${run.said}`);
  }
  const days = `from ${day(curve.time[first]!)} to ${day(curve.time[last]!)}`;
  const start = first === 0 ? run.result.data.equity.start : curve.equity[first - 1]!;
  const before =
    first === 0
      ? cite(run.result, '/equity/start', 'equity before')
      : equityAt(curve, first - 1, 'equity before');
  if (what === 'return') {
    const made = formatPercent(curve.equity[last]! / start - 1);
    return reply(
      `Return ${days}: ${made}, by the equity at the closes, in ${run.said}.`,
      before,
      equityAt(curve, last, 'equity at the end'),
    );
  }
  let [peak, high] = [first - 1, start];
  let [worst, from_, to_] = [0, peak, peak];
  for (let i = first; i <= last; i += 1) {
    const equity = curve.equity[i]!;
    if (equity > high) [peak, high] = [i, equity];
    if (equity / high - 1 < worst) [worst, from_, to_] = [equity / high - 1, peak, i];
  }
  const fall = formatPercent(worst);
  return reply(
    `Maximum drawdown ${days}: ${fall}, from a peak of those days, by the equity at the closes, in ${run.said}.`,
    from_ < first ? before : equityAt(curve, from_, 'equity at the peak'),
    to_ < 0 ? [] : equityAt(curve, to_, 'lowest equity after it'),
  );
}

function equityAt({ path, equity }: Curve, place: number, figure: string) {
  return citeCell(path, rowOf(place), EQUITY_COLUMN, figure, equity[place]!);
}

/** Why something is not told of part of a run. @throws ServiceError `not_found` */
export async function refusePeriod(facts: Facts, period: Period, example: string): Promise<never> {
  const run = await runOf(facts);
  const { from, to } = daysOf(period, run);
  const { slug } = (await botOf(facts)).data;
  throw missing(
    `of part of a run I work out the return and the maximum drawdown, and not what answers ${JSON.stringify(example)}`,
    `A backtest of those days tells it: \`service-local bots backtest ${slug} --from ${from} --to ${to}\`. Without days I tell it of the whole of ${run.said}.`,
  );
}
