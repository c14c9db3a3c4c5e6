import { z } from 'zod';
import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { readYamlFile } from '../../base/yaml-file.ts';

/** Unknown fields are errors, so API keys cannot be stored here: public market data needs none. */
export const definitionSchema = z.strictObject({
  /** Id of the exchange in ccxt, for example `binance`. */
  ccxt: z.string().regex(/^[a-z0-9]{1,64}$/, 'must be the id of an exchange in ccxt'),
  /** Options of the ccxt exchange. */
  options: z.record(z.string(), z.unknown()).optional(),
  /** Replaces `urls.api` of ccxt; only these addresses are then used. */
  urls: z.record(z.string(), z.unknown()).optional(),
  /** Symbols of the exchange by symbol of the bot, where they differ. */
  symbols: z.record(z.string(), z.string().min(1).max(100)).optional(),
});

const fileSchema = z.record(
  z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be a lower-case name'),
  definitionSchema,
);

/** Source of live market data. Only public data is used. */
export type ExchangeDefinition = z.output<typeof definitionSchema>;

export type Exchanges = Readonly<Record<string, ExchangeDefinition>>;

/**
 * Reads a YAML or JSON file of exchanges by name. Returns none if the file does not exist.
 *
 * @throws ServiceError `invalid_setting` with every problem.
 */
export function readExchanges(file: string): Exchanges {
  return readYamlFile(file, { schema: fileSchema, refuse: (all) => invalid(file, all) }) ?? {};
}

function invalid(file: string, problems: ServiceError['problems']): ServiceError {
  return new ServiceError('invalid_setting', `exchanges_file ${file} is invalid`, {
    problems,
    remedy:
      'Correct it. Each entry is NAME: {ccxt: ID, options: …, urls: …, symbols: …}, without API keys.',
  });
}

/**
 * Returns the requested exchange, or the only one if no name is given.
 *
 * @throws ServiceError `conflict`
 */
export function chooseExchange(exchanges: Exchanges, name: string | undefined): string {
  const names = Object.keys(exchanges);
  if (names.length === 0) throw noExchange();
  if (name === undefined && names.length > 1) {
    throw new ServiceError('conflict', 'the server has several exchanges, and none was chosen', {
      reason: 'unknown_exchange',
      remedy: `Choose one of ${names.join(', ')}.`,
    });
  }
  const chosen = name ?? names[0]!;
  if (Object.hasOwn(exchanges, chosen)) return chosen;
  const suggestion = closest(chosen, names);
  throw new ServiceError('conflict', `the server has no exchange ${JSON.stringify(chosen)}`, {
    reason: 'unknown_exchange',
    remedy: suggestion ? `Did you mean ${suggestion}?` : `Choose one of ${names.join(', ')}.`,
  });
}

/** Error for a request for live market data to a server without exchanges. */
export function noExchange(): ServiceError {
  return new ServiceError('conflict', 'the server has no exchange for live market data', {
    reason: 'no_exchange',
    remedy:
      'Add one, such as `binance: {ccxt: binance}`, to the file that `service-local config explain exchanges_file` names on the server, and restart the server.',
  });
}
