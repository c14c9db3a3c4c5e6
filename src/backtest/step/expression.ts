import { ServiceError } from '../../base/errors.ts';

/** A number at each step of a run; NaN where it is unknown. */
export type Reader = (step: number) => number;

/** @throws ServiceError `usage` for a name that does not exist. */
export type FindReader = (name: string) => Reader;

export const isTrue = (value: number): boolean => value !== 0 && !Number.isNaN(value);

/**
 * Parses an expression such as `fast > slow and position == 0`. Comparisons give 1 or 0. A name with an
 * index, such as `close[1]`, is the value that many steps before. A date is milliseconds since the epoch,
 * like `time`.
 *
 * ```
 * or → and → not → comparison → sum → product → sign → value
 * ```
 *
 * Symbols with other characters than letters, digits and `_` are quoted: `"BTC/USDT".close`. A quotation
 * mark in a symbol is doubled.
 *
 * @throws ServiceError `usage` with the column of the fault
 */
export function parseExpression(text: string, find: FindReader): Reader {
  if (text.length > MAX_LENGTH) {
    throw new ServiceError('usage', `an expression of ${text.length} characters`, {
      remedy: `Write at most ${MAX_LENGTH} characters.`,
    });
  }
  return new Parser(text, find).parse();
}

/** Each parenthesis or operator takes stack, both here and when the expression is read. */
const MAX_LENGTH = 500;

const TOKEN =
  /\s*(?:(?<date>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?Z?)?)|(?<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?<name>(?:[A-Za-z_]\w*|"(?:[^"]|"")*")(?:\.\w+)*)|(?<sign>[<>=!]=|&&|\|\||[-+*/%<>!()[\],]))/gy;

type Kind = 'date' | 'number' | 'name' | 'sign' | 'end';

interface Token {
  readonly kind: Kind;
  readonly text: string;
  /** 1-based. */
  readonly column: number;
}

type Combine = (a: number, b: number) => number;

const COMPARISONS: Readonly<Record<string, Combine>> = {
  '<': (a, b) => Number(a < b),
  '<=': (a, b) => Number(a <= b),
  '>': (a, b) => Number(a > b),
  '>=': (a, b) => Number(a >= b),
  '==': (a, b) => Number(a === b),
  '!=': (a, b) => Number(a !== b),
};
const SUMS: Readonly<Record<string, Combine>> = { '+': (a, b) => a + b, '-': (a, b) => a - b };
const PRODUCTS: Readonly<Record<string, Combine>> = {
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
  '%': (a, b) => a % b,
};
const OR: Readonly<Record<string, Combine>> = {
  or: (a, b) => Number(isTrue(a) || isTrue(b)),
};
const AND: Readonly<Record<string, Combine>> = {
  and: (a, b) => Number(isTrue(a) && isTrue(b)),
};

type Builder = readonly [count: number, build: (...of: Reader[]) => Reader];

const FUNCTIONS: ReadonlyMap<string, Builder> = new Map<string, Builder>([
  ['abs', [1, (a) => (step) => Math.abs(a(step))]],
  ['min', [2, (a, b) => (step) => Math.min(a(step), b(step))]],
  ['max', [2, (a, b) => (step) => Math.max(a(step), b(step))]],
  [
    'crossed_above',
    [2, (a, b) => (step) => Number(a(step) > b(step) && a(step - 1) <= b(step - 1))],
  ],
  [
    'crossed_below',
    [2, (a, b) => (step) => Number(a(step) < b(step) && a(step - 1) >= b(step - 1))],
  ],
]);
const WORDS: ReadonlyMap<string, string> = new Map([
  ['&&', 'and'],
  ['||', 'or'],
  ['!', 'not'],
]);

class Parser {
  readonly #find: FindReader;
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(text: string, find: FindReader) {
    this.#find = find;
    this.#tokens = tokensOf(text);
  }

  parse(): Reader {
    const whole = this.#either();
    if (this.#next.kind !== 'end') throw fault(this.#next, 'an operator or the end');
    return whole;
  }

  get #next(): Token {
    return this.#tokens[this.#at]!;
  }

  #take(...texts: readonly string[]): string | undefined {
    const { kind, text } = this.#next;
    if (kind === 'end' || !texts.includes(text)) return undefined;
    this.#at += 1;
    return text;
  }

  #expect(text: string): void {
    if (this.#take(text) === undefined) throw fault(this.#next, `"${text}"`);
  }

  /** Operands of one level, combined from left to right. */
  #chain(operators: Readonly<Record<string, Combine>>, operand: () => Reader): Reader {
    let left = operand();
    for (;;) {
      const taken = this.#take(...Object.keys(operators));
      if (taken === undefined) return left;
      const [combine, a, b] = [operators[taken]!, left, operand()];
      left = (step) => combine(a(step), b(step));
    }
  }

  readonly #either = (): Reader => this.#chain(OR, this.#both);
  readonly #both = (): Reader => this.#chain(AND, this.#negation);

  readonly #negation = (): Reader => {
    if (this.#take('not') === undefined) return this.#comparison();
    const negated = this.#negation();
    return (step) => Number(!isTrue(negated(step)));
  };

  readonly #comparison = (): Reader => {
    const left = this.#sum();
    const taken = this.#take(...Object.keys(COMPARISONS));
    if (taken === undefined) return left;
    const [compare, right] = [COMPARISONS[taken]!, this.#sum()];
    return (step) => compare(left(step), right(step));
  };

  readonly #sum = (): Reader => this.#chain(SUMS, this.#product);
  readonly #product = (): Reader => this.#chain(PRODUCTS, this.#signed);

  readonly #signed = (): Reader => {
    if (this.#take('-') === undefined) return this.#value();
    const value = this.#signed();
    return (step) => -value(step);
  };

  #value(): Reader {
    if (this.#take('(') !== undefined) {
      const inner = this.#either();
      this.#expect(')');
      return inner;
    }
    const token = this.#next;
    const { kind, text } = token;
    if (kind === 'end' || kind === 'sign') throw fault(token, 'a value');
    this.#at += 1;
    if (kind === 'name')
      return this.#take('(') === undefined ? this.#named(text) : this.#call(token);
    const number = kind === 'date' ? instantOf(token) : Number(text);
    return () => number;
  }

  #named(text: string): Reader {
    const read = this.#find(unquote(text));
    if (this.#take('[') === undefined) return read;
    const { kind, text: back } = this.#next;
    if (kind !== 'number' || !/^\d+$/.test(back)) {
      throw fault(this.#next, 'a number of steps');
    }
    this.#at += 1;
    this.#expect(']');
    return (step) => read(step - Number(back));
  }

  #call(name: Token): Reader {
    const [count, build] = FUNCTIONS.get(name.text) ?? [];
    if (count === undefined || build === undefined) {
      throw fault(name, `one of the functions ${[...FUNCTIONS.keys()].join(', ')}`);
    }
    const inputs = [this.#either()];
    while (this.#take(',') !== undefined) inputs.push(this.#either());
    this.#expect(')');
    if (inputs.length !== count) throw fault(name, `${name.text} with ${count} values`);
    return build(...inputs);
  }
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [kind, value] = Object.entries(match.groups!).find(([, found]) => found !== undefined)!;
    at = match.index + match[0].length;
    const word = WORDS.get(value) ?? value;
    const isWord = ['and', 'or', 'not'].includes(word);
    tokens.push({
      kind: isWord ? 'sign' : (kind as Kind),
      text: word,
      column: at - value.length + 1,
    });
  }
  const rest = text.slice(at);
  const end: Token = {
    kind: 'end',
    text: rest.trim(),
    column: text.length - rest.trimStart().length + 1,
  };
  if (end.text !== '') throw fault(end, 'a value or an operator');
  return [...tokens, end];
}

/** `"BTC/USDT".close` → `BTC/USDT.close` */
function unquote(name: string): string {
  const [, quoted, rest] = /^"(.*)"(.*)$/s.exec(name) ?? [];
  return quoted === undefined ? name : `${quoted.replaceAll('""', '"')}${rest}`;
}

function instantOf(token: Token): number {
  const { text } = token;
  const instant = Date.parse(text.length === 10 || text.endsWith('Z') ? text : `${text}Z`);
  // Date.parse accepts 30 February as 1 March.
  const isReal =
    !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(text.slice(0, 10));
  if (!isReal) throw fault(token, 'a date such as 2020-01-31');
  return instant;
}

function fault({ text, column }: Token, expected: string): ServiceError {
  const message =
    text === ''
      ? `the expression ends before ${expected}`
      : `expected ${expected} at column ${column} of the expression, found ${JSON.stringify(text)}`;
  return new ServiceError('usage', message, {
    remedy: 'Write an expression such as close > open and position == 0.',
  });
}
