import type { exampleDocument } from '../../src/api/bots.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { documentOn } from '../tasks/market.ts';

/** A bot that may trade: on `SPX` of the catalogue, every limit of its risk stated. */
export function tradingOn(slug: string): ReturnType<typeof exampleDocument> {
  const document = documentOn(slug, 'SPX', '1d');
  const names = Object.keys(NO_RISK_LIMITS);
  const risk = Object.fromEntries(names.map((name) => [name, { unlimited: 'a test' }]));
  return { ...document, spec: { ...(document['spec'] as object), risk } };
}
