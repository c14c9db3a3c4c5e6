/** Initial account of a session that continues another one. */
import { z } from 'zod';
import type { Opening } from '../engine/portfolio.ts';
import type { RiskState } from '../engine/risk/risk-state.ts';
import type { Problem } from '../base/errors.ts';
import type { SessionState } from '../events/session-state.ts';

export type { Opening } from '../engine/portfolio.ts';

const money = z.number();

const riskSchema = z.strictObject({
  peak_equity: money.positive(),
  day_start_equity: money.positive(),
  day: z.iso.date().nullable(),
  executions: z
    .array(
      z.strictObject({
        symbol: z.string(),
        side: z.enum(['buy', 'sell']),
        times: z.array(z.number()).max(100_000),
      }),
    )
    .optional(),
});

export const openingSchema = z.strictObject({
  cash: money,
  positions: z.record(
    z.string(),
    z.strictObject({ quantity: z.number(), price: z.number().positive() }),
  ),
  risk: riskSchema.optional(),
});

/** Rules of a bot for an account. */
export interface AccountRules {
  readonly symbols: readonly string[];
  readonly model: 'cash' | 'margin';
}

/** Why a bot cannot begin with an account; empty when it can. */
export function openingProblems(opening: Opening, { symbols, model }: AccountRules): Problem[] {
  const parsed = openingSchema.safeParse(opening);
  const malformed = (parsed.error?.issues ?? []).map(({ path, message }) => ({
    code: 'opening_invalid',
    pointer: '',
    message: `the account to continue has an invalid ${path.join('.')}: ${message}`,
  }));
  const held = Object.entries(opening.positions).filter(([, { quantity }]) => quantity !== 0);
  const strange = held
    .filter(([symbol]) => !symbols.includes(symbol))
    .map(([symbol, { quantity }]) => ({
      code: 'position_not_in_universe',
      pointer: '/spec/universe/symbols',
      message: `the account to continue holds ${quantity} ${symbol}, which the bot does not trade`,
    }));
  const short = held
    .filter(([, { quantity }]) => model === 'cash' && quantity < 0)
    .map(([symbol, { quantity }]) => ({
      code: 'short_in_cash_account',
      pointer: '/spec/engine/account/model',
      message: `the account to continue is short ${-quantity} ${symbol}, which a cash account cannot be`,
    }));
  return [...malformed, ...strange, ...short];
}

/**
 * Opening of a session that continues an account.
 * @param priceOf price of a position whose state has none, as recorded by version 0.1.0.
 */
export function openingFrom(
  { cash, positions, carry }: Pick<SessionState, 'cash' | 'positions' | 'carry'>,
  priceOf: (symbol: string) => number | undefined,
  before: Opening | null,
): Opening {
  const held = Object.entries(positions).map(([symbol, quantity]) => {
    const price = carry?.marks[symbol] ?? priceOf(symbol) ?? before?.positions[symbol]?.price ?? 0;
    return [symbol, { quantity, price }] as const;
  });
  const risk = carry?.risk ?? before?.risk;
  return { cash, positions: Object.fromEntries(held), ...(risk && { risk }) };
}

/** Opening with `cash` that has used up the same share of each loss limit as the given account. */
export function openingAfterLosses(
  { carry, equity }: Pick<SessionState, 'carry' | 'equity'>,
  cash: number,
): Opening | null {
  if (carry === undefined) return null;
  return { cash, positions: {}, risk: rescaleRisk(carry.risk, equity, cash) };
}

/** Caps the losses of an account, so that another account can begin with the same share. */
const MOST_LOST = 1e6;

function rescaleRisk(risk: RiskState, equity: number, cash: number): RiskState {
  const share = (value: number): number => {
    const ratio = equity > 0 ? value / equity : MOST_LOST;
    return cash * Math.min(Math.max(ratio, 1 / MOST_LOST), MOST_LOST);
  };
  return {
    ...risk,
    peak_equity: share(risk.peak_equity),
    day_start_equity: share(risk.day_start_equity),
  };
}
