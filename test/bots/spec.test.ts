import { describe, expect, it } from 'vitest';
import { parseSpec } from '../../src/bots/parse.ts';
import { engineConfig } from '../../src/bots/spec.ts';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import { VALID } from './specs.ts';

function configOf(...changes: readonly (readonly [string, string])[]) {
  const text = changes.reduce((before, [from, to]) => {
    expect(before).toContain(from);
    return before.replace(from, to);
  }, VALID);
  const { spec, problems } = parseSpec(text, 'bot.yaml');
  expect(problems).toEqual([]);
  return engineConfig(spec!);
}

describe('the engine settings of a spec', () => {
  it('have numbers for decimal texts, and no limits by default', () => {
    expect(configOf()).toEqual({
      cash: 100_000,
      fill: { model: 'volume_share', limit: 0.1 },
      units: 'fractional',
      fees: { model: 'percent', rate: 0.001, min: 0 },
      slippage: { model: 'none' },
      account: { model: 'margin', initial: 0.5, maintenance: 0.25 },
      risk: { ...NO_RISK_LIMITS, max_order_value: 50_000 },
      seed: 7,
      timeframe: '1d',
    });
  });

  it('contain every risk limit that the spec sets', () => {
    const { risk } = configOf([
      'max_position_pct: {unlimited: one instrument only}',
      `max_order_qty: "2000.5"
    price_collar_bps: 200
    max_messages_per_second: 20
    max_position_pct: 0.25
    max_daily_loss_pct: 0.02
    max_drawdown_pct: 0.15
    max_instruments: 2`,
    ]);
    expect(risk).toEqual({
      max_order_value: 50_000,
      max_order_qty: 2000.5,
      price_collar_bps: 200,
      max_messages_per_second: 20,
      max_position_pct: 0.25,
      max_daily_loss_pct: 0.02,
      max_drawdown_pct: 0.15,
      max_instruments: 2,
    });
  });

  it('contain every optional limit that the spec sets', () => {
    const limitsOf = (text: string) => configOf(['  risk:', `  risk:\n    ${text}`]).optionalLimits;
    expect(limitsOf('price_collar_period: {seconds: 60, bps: 50}')).toEqual({
      price_collar_period: { seconds: 60, bps: 50 },
    });
    expect(limitsOf('max_messages_per_second: 9\n    messages_kept_for_cancels: 3')).toEqual({
      messages_kept_for_cancels: 3,
    });
    expect(limitsOf('repeated_execution: {count: 5, seconds: 60}')).toEqual({
      repeated_execution: { count: 5, seconds: 60 },
    });
    expect(limitsOf('permitted: {instruments: [], venues: [binance]}')).toEqual({
      permitted: [],
    });
    expect(limitsOf('repeated_execution: {unlimited: it trades once a day}')).toBeUndefined();
  });

  it('are the same for short and full forms of models', () => {
    const fill = 'fill: {model: volume_share, limit: 0.1}';
    const fillOf = (text: string) => configOf([fill, `fill: ${text}`]).fill;
    expect(fillOf('next_open')).toEqual(fillOf('{model: next_open}'));
    expect(fillOf('volume_share')).toEqual({ model: 'volume_share', limit: 0.025 });
    expect(fillOf('{model: volume_share}')).toEqual(fillOf('volume_share'));
    const account = 'account: {model: margin, initial: 0.5, maintenance: 0.25}';
    expect(configOf([account, 'account: cash']).account).toEqual({ model: 'cash' });
    expect(configOf([account, 'account: {model: cash}']).account).toEqual({ model: 'cash' });
  });

  it('support fees per share and both slippage models', () => {
    const { fees, slippage } = configOf(
      ['{model: percent, rate: "0.001"}', '{model: per_share, rate: "0.005", min: "1"}'],
      ['slippage: {model: none}', 'slippage: {model: volume_share, impact: 0.1}'],
    );
    expect(fees).toEqual({ model: 'per_share', rate: 0.005, min: 1 });
    expect(slippage).toEqual({ model: 'volume_share', impact: 0.1 });
    expect(configOf(['{model: none}', '{model: basis_points, bps: 2.5}']).slippage).toEqual({
      model: 'basis_points',
      bps: 2.5,
    });
  });

  it('cannot have slippage that reduces a price to zero', () => {
    const spec = VALID.replace(
      'slippage: {model: none}',
      'slippage: {model: volume_share, impact: 1}',
    );
    const { problems } = parseSpec(spec, 'bot.yaml');
    expect(problems).toMatchObject([{ pointer: '/spec/engine/slippage/impact' }]);
  });
});
