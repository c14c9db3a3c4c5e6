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

it.each([
  ['timeframe', '1hour', '1h'],
  ['timeframe', '2 weeks', undefined],
  ['timeframe', '5mins', '5m'],
  ['timeframe', '1D', '1d'],
  ['calendar', 'NYSE', 'XNYS'],
  ['calendar', 'nasdaq', 'XNAS'],
  ['calendar', 'LSE', 'XLON'],
])('%s: %s suggests %s', (field, value, suggestion) => {
  const bot = parse(VALID) as { spec: Record<string, Record<string, unknown>> };
  bot.spec[field === 'calendar' ? 'universe' : 'data']![field] = value;
  expect(parseSpec(stringify(bot), 'bot.yaml').problems).toMatchObject([
    { pointer: expect.stringContaining(field), ...(suggestion && { suggestion }) },
  ]);
});

it('does not suggest a model of another field', () => {
  expect(suggestionOf('account', 'none')).toBeUndefined();
});
