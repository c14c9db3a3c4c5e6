/** Phrases with a value: comparisons, changes, numbers, days and names. */
import { MONTH_NAME, monthNumber } from './dates.ts';
import { phrase, type Condition, type Phrase, type Reading } from './tags.ts';

const NUMBER = '(\\$? ?-?\\d+(?:\\.\\d+)?%?)';
const UNIT =
  '(?: (usd|dollars?|bucks|eur|days?|calendar days?|weeks?|months?|years?|bars?|trades?|times?|losses|wins))?';
const MORE =
  'more than|over|above|greater than|higher than|larger than|bigger than|deeper than|exceed(?:s|ed|ing)?|in excess of|beyond|longer than|upwards of|>';
const LESS = 'less than|under|below|lower than|smaller than|fewer than|shorter than|<';
const AT_LEAST = 'at least|no less than|not less than|a minimum of|minimum|> =|>=';
const AT_MOST = 'at most|no more than|not more than|up to|a maximum of|< =|<=';
const OPS: readonly (readonly [string, Condition['op']])[] = [
  [MORE, '>'],
  ['(?:better|worse) than(?! (?:19|20)\\d\\d(?: |$))', '>'],
  [LESS, '<'],
  [AT_LEAST, '>='],
  [AT_MOST, '<='],
  ['exactly|=', '='],
];

const UNITS: Readonly<Record<string, readonly [Condition['unit'], number]>> = {
  usd: ['money', 1],
  dollar: ['money', 1],
  buck: ['money', 1],
  calendar: ['days', 1],
  day: ['days', 1],
  week: ['days', 7],
  month: ['months', 1],
  year: ['months', 12],
  bar: ['bars', 1],
  trade: ['count', 1],
  time: ['count', 1],
  los: ['count', 1],
  win: ['count', 1],
};

function readCondition(
  op: Condition['op'],
  number: string,
  unit: string | undefined,
  said: string,
): Reading {
  const [name, factor] = number.endsWith('%')
    ? (['percent', 0.01] as const)
    : number.startsWith('$')
      ? (['money', 1] as const)
      : unit === undefined
        ? ([undefined, 1] as const)
        : (Object.entries(UNITS).find(([start]) => unit.startsWith(start))?.[1] ?? [
            undefined,
            NaN,
          ]);
  const value = Number.parseFloat(number.replace(/^\$ ?/, '')) * factor;
  return { slot: 'condition', value: { op, value, unit: name, said } satisfies Condition };
}

export const CONDITIONS: readonly Phrase[] = [
  ...OPS.map(([words, op]) =>
    phrase(`(${words}) ${NUMBER}${UNIT}`, ([, said, number, unit]) =>
      readCondition(op, number!, unit, said!),
    ),
  ),
  phrase(
    `${NUMBER}${UNIT} (?:or|and) (more|longer|higher|above|bigger|greater|less|fewer|shorter|below|smaller)${UNIT}`,
    ([, number, unit, word, after]) =>
      readCondition(
        /^(?:more|long|high|above|big|great)/.test(word!) ? '>=' : '<=',
        number!,
        unit ?? after,
        word!,
      ),
  ),
  phrase(`between ${NUMBER}(?:${UNIT}) and ${NUMBER}${UNIT}`, ([, low, , high, unit]) => {
    const upper = readCondition('between', high!, unit, 'between').value as Condition;
    const isPercent = high!.endsWith('%');
    const value = Number.parseFloat(low!.replace(/^\$ ?/, '')) * (isPercent ? 0.01 : 1);
    return { slot: 'condition', value: { ...upper, value, upTo: upper.value } };
  }),
];

const COSTS = '(?:the |trading |any )?(fees?|commissions?|slippage)';
const BE =
  '(?: (?:were|was|are|is|had been|have been|got|to be|of|at|would be|would have been|set to|=|:))?';

const costOf = (name: string): 'fees' | 'slippage' => (name === 'slippage' ? 'slippage' : 'fees');
const FACTORS: readonly (readonly [string, number])[] = [
  [
    'doubled?|twice(?: as (?:high|much|large|big|expensive))?|2 times(?: as (?:high|much)| higher)?',
    2,
  ],
  ['tripled?|3 times(?: as (?:high|much)| higher)?', 3],
  ['halved?|half(?: as (?:high|much))?|cut in half', 0.5],
  ['zero|0|gone|removed|free|nothing|eliminated', 0],
];

export const CHANGES: readonly Phrase[] = [
  ...FACTORS.flatMap(([words, factor]) => {
    const change = (name: string): Reading => ({
      slot: 'change',
      value: { of: costOf(name), factor },
    });
    return [
      phrase(`${COSTS}${BE} (?:${words})`, ([, name]) => change(name!)),
      phrase(`(?:${words}) ${COSTS}`, ([, name]) => change(name!)),
    ];
  }),
  phrase(`(?:without|no|if there (?:were|was) no) ${COSTS}`, ([, name]) => ({
    slot: 'change',
    value: { of: costOf(name!), factor: 0 },
  })),
  phrase(`${COSTS}${BE} (\\d+(?:\\.\\d+)?)(%| bps)(?: instead)?`, ([, name, number, unit]) => ({
    slot: 'change',
    value: { of: costOf(name!), value: Number(number) / (unit === '%' ? 100 : 10_000) },
  })),
  phrase(
    `(?:(?:starting|initial|start) )?(?:(?:cash|capital|money)${BE}|(?:we |it |i )?(?:start(?:ed)?|began) with) \\$? ?(\\d+)(?: usd| dollars)?(?: instead)?`,
    ([, number]) => ({
      slot: 'change',
      value: { of: 'cash', value: Number(number) },
    }),
  ),
  phrase(
    '(\\d+(?:\\.\\d+)?)((?: / \\d+(?:\\.\\d+)?)+)(?: (?:crossover|cross|sma|averages?|instead|parameters?|params?))*',
    ([, first, rest]) => ({
      slot: 'change',
      value: { of: 'params', values: [first!, ...rest!.split(' / ').slice(1)].map(Number) },
    }),
  ),
];

/** Phrases that name a parameter of the strategy with a value. */
export function paramPhrases(names: readonly string[]): Phrase[] {
  return names.map((name) =>
    phrase(
      `(?:the )?${escapeWords(splitName(name))}(?: (?:period|window|average|length|parameter))?${BE} (\\d+(?:\\.\\d+)?)(?: bars| days)?(?: instead)?`,
      ([, number]) => ({
        slot: 'change',
        value: { of: 'param', name, value: Number(number) },
      }),
    ),
  );
}

const escapeWords = (text: string): string => text.replaceAll(/[^\p{L}\p{N} ]/gu, '\\$&');
const splitName = (name: string): string => name.replaceAll(/[_-]/g, ' ').toLowerCase();

/**
 * The only symbol of a bot changes nothing where it says what is traded. `The return of SPX` may mean that
 * of the market.
 */
export function onlySymbolPhrases(symbol: string): Phrase[] {
  const name = escapeWords(symbol);
  const patterns = [
    `(?:on|in|trading|with) (?:the )?${name}`,
    `${name}(?= (?:trades?|positions?|bot|strategy|backtests?)( |$))`,
  ];
  return patterns.map((pattern) => phrase(pattern, () => ({ slot: 'filler', value: '' })));
}

export function namePhrase(name: string, reading: Reading): Phrase {
  return phrase(escapeWords(name), () => reading);
}

const WEEKDAYS = 'sun mon tue wed thu fri sat'.split(' ');
const WEEKDAY = 'mon|tues?|wed|thu(?:rs)?|fri|sat|sun';
const WEEKDAY_NAME = 'mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?';

export const NUMBERS: readonly Phrase[] = [
  phrase('\\d{1,3}', ([number]) => ({ slot: 'number', value: Number(number) })),
  phrase('(\\d{1,3})th', ([, number]) => ({ slot: 'nth', value: Number(number) })),
  phrase('(?:of |in |for |from )?(?:version |versions |v |v)(\\d{1,4})', ([, number]) => ({
    slot: 'version',
    value: Number(number),
  })),
  phrase(`(?:in|of|during|every|each) (?:the month of )?(${MONTH_NAME})s?`, ([, name]) => ({
    slot: 'month',
    value: monthNumber(name!),
  })),
  phrase(
    `(?:on |of |during )?(?:a |the )?(?:${WEEKDAY_NAME})|on (?:a |the )?(?:${WEEKDAY})`,
    ([text]) => ({
      slot: 'weekday',
      value: WEEKDAYS.findIndex((day) => new RegExp(`(?:^| )${day}`).test(text!)),
    }),
  ),
  phrase(
    '(?:at|around|in the hour of) (\\d{1,2})(?: : 00)?(?: (am|pm|utc|o clock|h))?',
    ([, hour, half]) => ({
      slot: 'hour',
      value:
        (Number(hour) % (half === undefined || half.length !== 2 ? 24 : 12)) +
        (half === 'pm' ? 12 : 0),
    }),
  ),
  phrase('#run', () => ({ slot: 'run', value: 'id' })),
];
