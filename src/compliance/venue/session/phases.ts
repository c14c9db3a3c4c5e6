import type { OrderTerms } from './order.ts';

/** What an instrument is doing. RTS 7 Article 9(3)(c) has members test suspended instruments, too. */
export type Phase =
  | 'pre_open'
  | 'opening_auction'
  | 'continuous'
  | 'volatility_auction'
  | 'halt'
  | 'closing_auction'
  | 'closed';

interface PhaseRules {
  /** Whether orders are taken and amended; they may be canceled always. */
  readonly takesOrders: boolean;
  /** Whether orders gather for one price, which is indicated, and trade at its end. */
  readonly isCall: boolean;
}

/** Common venue practice; each venue's own rules differ in detail. */
export const PHASES: Readonly<Record<Phase, PhaseRules>> = {
  pre_open: { takesOrders: true, isCall: false },
  opening_auction: { takesOrders: true, isCall: true },
  continuous: { takesOrders: true, isCall: false },
  volatility_auction: { takesOrders: true, isCall: true },
  halt: { takesOrders: false, isCall: false },
  closing_auction: { takesOrders: true, isCall: true },
  closed: { takesOrders: false, isCall: false },
};

/** Whether the phase takes such an order: what asks to trade at once, or not at once, needs trading. */
export function takesOrder(
  phase: Phase,
  terms: Pick<OrderTerms, 'time_in_force' | 'post_only'>,
): boolean {
  if (phase === 'continuous') return true;
  const { time_in_force: tif, post_only: postOnly } = terms;
  return PHASES[phase].takesOrders && tif !== 'ioc' && tif !== 'fok' && postOnly !== true;
}
