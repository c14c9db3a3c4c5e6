import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseSpec } from '../../src/bots/parse.ts';
import { VALID } from './specs.ts';

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
])('%s: %s, a model that needs parameters, gets a suggestion that is valid', (field, model) => {
  const suggestion = suggestionOf(field, model);
  expect(suggestion).toContain(`{model: ${model}`);
  expect(suggestionOf(field, parse(suggestion!))).toBeUndefined();
});

it('does not suggest a model of another field', () => {
  expect(suggestionOf('account', 'none')).toBeUndefined();
});
