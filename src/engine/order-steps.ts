import { KINDS, WIDTH, type JournalRows, type OrderEvent } from './journal.ts';
import { Rows } from './number-rows.ts';
import { ORDER_TYPES, type OrderType } from './orders/order.ts';

/** The fields of an order event that decide why a position was closed, without texts to create. */
export interface OrderStep {
  kind: OrderEvent['kind'];
  /** ms since the epoch. */
  time: number;
  /** 0 for an event of the account. */
  order: number;
  symbol: string;
  /** Undefined unless an order is submitted. */
  type: OrderType | undefined;
  parent: number | undefined;
  /** Units held after a booking; undefined for other events. */
  position: number | undefined;
}

/** Visits the events of a journal in order. A step is valid until the next one. */
export function forEachStep(
  { data: { symbols, rows } }: JournalRows,
  visit: (step: Readonly<OrderStep>) => void,
): void {
  const step: OrderStep = {
    kind: 'order.submitted',
    time: 0,
    order: 0,
    symbol: '',
    type: undefined,
    parent: undefined,
    position: undefined,
  };
  Rows.from(WIDTH, rows).forEach((chunk, at) => {
    const kind = KINDS[chunk[at]!]!;
    const isSubmitted = kind === 'order.submitted';
    const isBooked = kind === 'order.filled' || kind === 'order.fee' || kind === 'order.corrected';
    step.kind = kind;
    step.time = chunk[at + 1]!;
    step.order = chunk[at + 2]!;
    step.symbol = symbols[chunk[at + 3]!] ?? '';
    step.type = isSubmitted ? ORDER_TYPES[(chunk[at + 4]! >> 4) & 15] : undefined;
    step.parent = isSubmitted && chunk[at + 11] !== 0 ? chunk[at + 11] : undefined;
    step.position = isBooked ? chunk[at + 9] : undefined;
    visit(step);
  });
}
