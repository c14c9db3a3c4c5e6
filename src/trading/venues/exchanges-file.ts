import { z } from 'zod';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { readYamlFile } from '../../base/yaml-file.ts';

/** Unknown fields are refused, and with them keys and passwords: nothing here needs any. */
export const definitionSchema = z.strictObject({
  /** What ccxt calls the exchange: `binance`. */
  ccxt: z.string().regex(/^[a-z0-9]{1,64}$/, 'must be the id of an exchange of ccxt'),
  /** Of ccxt. */
  options: z.record(z.string(), z.unknown()).optional(),
  /** What ccxt has in `urls.api`. When they are given, nothing but these is asked. */
  urls: z.record(z.string(), z.unknown()).optional(),
  /** What the exchange calls the symbols that bots call otherwise. */
  symbols: z.record(z.string(), z.string().min(1).max(100)).optional(),
});

const fileSchema = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a name in lower case'),
  definitionSchema,
);

/** Where live market data come from, public data only. */
export type ExchangeDefinition = z.output<typeof definitionSchema>;

export type Exchanges = Readonly<Record<string, ExchangeDefinition>>;

/**
 * Reads a YAML or JSON file of exchanges by name; there are none where there is no file.
 * @throws ServiceError `invalid_setting` with every problem.
 */
export function readExchanges(file: string): Exchanges {
  return readYamlFile(file, { schema: fileSchema, refuse: (all) => invalid(file, all) }) ?? {};
}

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `exchanges_file ${file} cannot be used`, {
    problems,
    remedy: 'Correct it: NAME: {ccxt: ID, options: …, urls: …, symbols: …}, without any keys.',
  });
}

/**
 * The exchange that was asked for; the only one when none was named.
 * @throws ServiceError `conflict`
 */
export function chooseExchange(exchanges: Exchanges, name: string | undefined): string {
  const names = Object.keys(exchanges);
  if (names.length === 0) throw noExchange();
  if (name === undefined && names.length > 1) {
    throw new ServiceError('conflict', 'the server knows several exchanges', {
      reason: 'unknown_exchange',
      remedy: `Name one of ${names.join(', ')}.`,
    });
  }
  const chosen = name ?? names[0]!;
  if (Object.hasOwn(exchanges, chosen)) return chosen;
  const suggestion = closest(chosen, names);
  throw new ServiceError('conflict', `the server knows no exchange ${JSON.stringify(chosen)}`, {
    reason: 'unknown_exchange',
    remedy: suggestion ? `Did you mean ${suggestion}?` : `Name one of ${names.join(', ')}.`,
  });
}

/** To whoever wants live market data of a process that has none. */
export function noExchange(): ServiceError {
  return new ServiceError('conflict', 'the server knows no exchange for live market data', {
    reason: 'no_exchange',
    remedy:
      'Name one in its exchanges_file (~/.service-local/exchanges.yaml where nothing else is said), such as `binance: {ccxt: binance}`, and restart it.',
  });
}
