import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseSpec } from '../../src/bots/parse.ts';
import { VALID } from './specs.ts';

/** What is found in the valid bot with one field of its engine replaced. */
function suggestionOf(field: string, value: unknown): string | undefined {
  const bot = parse(VALID) as { spec: { engine: Record<string, unknown> } };
  bot.spec.engine[field] = value;
  return parseSpec(stringify(bot), 'bot.yaml').problems[0]?.suggestion;
}

it.each([
  ['account', 'margin'],
  ['fees', 'percent'],
  ['fees', 'per_share'],
  ['slippage', 'basis_points'],
  ['slippage', 'volume_share'],
])('%s: %s, which is a map, is suggested as one that is valid', (field, model) => {
  const suggestion = suggestionOf(field, model);
  expect(suggestion).toContain(`{model: ${model}`);
  expect(suggestionOf(field, parse(suggestion!))).toBeUndefined();
});

it('of another field is not suggested', () => {
  expect(suggestionOf('account', 'none')).toBeUndefined();
});
