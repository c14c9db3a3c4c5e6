import { ServiceError } from '../../base/errors.ts';

/** A command of `backtest --step`. */
export type Command =
  | { readonly kind: 'next'; readonly what: 'bar' | 'order' | 'fill'; readonly count: number }
  | { readonly kind: 'until' | 'break' | 'print'; readonly expression: string }
  | { readonly kind: 'delete'; readonly number: number }
  | { readonly kind: 'continue' | 'show' | 'breaks' }
  | { readonly kind: 'help' }
  | { readonly kind: 'quit' };

/** Usage and description of each command. */
export const COMMANDS: Readonly<Record<string, string>> = {
  'next [bar|order|fill] [COUNT]': 'go to the next bar, order or fill, or to the COUNT-th next',
  'until EXPRESSION': 'go to the next bar at which the expression is true',
  'break EXPRESSION': 'set a breakpoint',
  breaks: 'list the breakpoints',
  'delete NUMBER': 'remove the breakpoint with this number',
  continue: 'go to the next breakpoint, or to the end',
  'print EXPRESSION': 'print the value of an expression',
  show: 'print the bar, indicators, orders and account again',
  help: 'list the commands',
  quit: 'end; the results are written only at the last bar',
};

const SHORT: ReadonlyMap<string, string> = new Map([
  ['n', 'next'],
  ['o', 'next order'],
  ['f', 'next fill'],
  ['u', 'until'],
  ['b', 'break'],
  ['c', 'continue'],
  ['p', 'print'],
  ['s', 'show'],
  ['q', 'quit'],
  ['h', 'help'],
]);

/** @throws ServiceError `usage` */
export function parseCommand(line: string): Command {
  const [first = '', ...others] = line.trim().split(/\s+/);
  const [word = '', ...words] = [...(SHORT.get(first) ?? first).split(' '), ...others];
  const rest = words.join(' ');
  switch (word) {
    case 'next': {
      const found = /^(bar|order|fill)?\s*([1-9]\d{0,8})?$/.exec(rest);
      if (found === null) break;
      const [, what = 'bar', count = '1'] = found;
      return { kind: word, what: what as 'bar', count: Number(count) };
    }
    case 'until':
    case 'break':
    case 'print':
      if (rest === '') {
        throw new ServiceError('usage', `${word} needs an expression`, {
          remedy: `Write one after it, for example ${word} close > open.`,
        });
      }
      return { kind: word, expression: rest };
    case 'delete':
      if (!/^\d{1,9}$/.test(rest)) break;
      return { kind: word, number: Number(rest) };
    case 'continue':
    case 'show':
    case 'breaks':
    case 'help':
    case 'quit':
      if (rest !== '') break;
      return { kind: word };
  }
  throw new ServiceError('usage', `unknown command ${JSON.stringify(line.trim())}`, {
    remedy: 'Enter help for a list of the commands.',
  });
}
