/** A fault in the handling of orders: a text of the source, and its replacement. */
export interface Mutation {
  readonly name: string;
  /** Below `src`; the text is replaced where it first occurs. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

type Fault = readonly [name: string, from: string, to: string];

/** Faults of each file below `src`. */
const FAULTS: Readonly<Record<string, readonly Fault[]>> = {
  'engine/engine.ts': [
    [
      'a halt cancels nothing',
      "for (const order of this.#run.working) this.#execution.withdraw(order, 'halted');",
      '',
    ],
  ],
  'engine/execution/sent-orders.ts': [
    [
      'cumulative fills are added',
      'sum(order.filled, report.filled)',
      '(order.filled + report.filled)',
    ],
    ['cumulative costs are added', 'sum(sent.cost, report.cost)', '(sent.cost + report.cost)'],
    [
      'a late report lowers the sums',
      'Math.abs(reported) > Math.abs(known) ? reported : known',
      'reported',
    ],
    ['purchases count as sales', 'const sign = signOf(order);', 'const sign = -signOf(order);'],
    ['an order with a report is not marked', 'sent.isReported = true;', ''],
    ['numbers of reports are not checked', 'checkNumbers(report);', ''],
    [
      'the reason of a cancel is lost',
      'return pendingCancel ?? known ?? (isImmediate',
      'return known ?? (isImmediate',
    ],
    [
      'all rejections have one reason',
      "return known ?? 'refused_by_venue';",
      "return 'refused_by_venue';",
    ],
    [
      'corrections are ignored',
      'isCorrection ? reported : fartherFrom0(known, reported)',
      'fartherFrom0(known, reported)',
    ],
  ],
  'engine/execution/venue-execution.ts': [
    ['prices are not rounded', 'this.#terms.roundPrices(order);', ''],
    [
      'the end of an order is ignored',
      "if (status !== 'open' && status !== 'filled') {",
      "if (status === 'canceled') {",
    ],
    [
      'a cancel by the venue is ignored',
      "if (status !== 'open' && status !== 'filled') {",
      "if (status === 'rejected' || status === 'expired') {",
    ],
    [
      'fills are booked with the wrong sign',
      'booking.quantity = change.quantity;',
      'booking.quantity = -change.quantity;',
    ],
    [
      'the price of a fill is not booked',
      'booking.price = change.price;',
      'booking.price = order.instrument.close;',
    ],
    [
      'a cancel takes effect at once',
      'const isAtVenue = sent !== undefined &&',
      'const isAtVenue = sent === undefined &&',
    ],
    ['changed rules are ignored', 'this.#terms.revise(rules);', ''],
    [
      'resting orders are not checked after a halt',
      "if (this.#gate.collar.isBeyond(order, reference)) this.withdraw(order, 'price_collar_bps');",
      '',
    ],
    [
      'corrections are not recorded',
      "journal.booked('order.corrected', order, booking, portfolio);",
      '',
    ],
  ],
  'engine/execution/venue-terms.ts': [
    [
      'prices are rounded against the order',
      "roundToGrid(order.limit, tick, isBuy ? 'down' : 'up')",
      "roundToGrid(order.limit, tick, isBuy ? 'up' : 'down')",
    ],
    [
      'quantities are not rounded',
      "return roundToGrid(quantity, this.#rules[index]!.step, 'down');",
      'return quantity;',
    ],
    ['day orders are sent', "if (timeInForce === 'day') return false;", ''],
    [
      'orders of groups are sent',
      'order.stopLoss === undefined &&\n      order.ocoGroup === 0',
      'order.stopLoss === undefined',
    ],
    [
      'orders that the venue does not support are sent',
      "if (!this.#supports(order)) return 'not_supported_by_venue';",
      '',
    ],
    ['a halt is ignored', "if (phase === 'halted' ||", 'if ('],
    ['a closed market is ignored', "if (phase === 'closed') return 'market_closed';", ''],
    [
      'orders that an auction does not accept are sent',
      "return phase === 'auction' && !canWait ?",
      "return phase === 'auction' && canWait ?",
    ],
    ['an instrument trades right after a halt', 'this.resuming.add(index);', ''],
    [
      'orders for a delisted instrument are sent',
      "if (rules === undefined) return 'unknown_symbol';",
      'if (rules === undefined) return undefined;',
    ],
  ],
  'engine/orders/order-book.ts': [
    [
      'the strategy receives no fill',
      'fills.push(Object.freeze({ order: viewOf(order), instrument, quantity, price, fee }));',
      '',
    ],
  ],
  'engine/orders/order-lifecycle.ts': [
    [
      'a partial fill ends the order',
      'order.filled >= order.quantity * (1 - 1e-12)',
      'order.filled > 0',
    ],
    ['a cancel is not requested', 'order.pendingCancel = change.reason;', ''],
  ],
  'engine/portfolio.ts': [
    [
      'corrections are booked without their price',
      'this.cash -= quantity * price + fee;\n    this.tradedNotional += notional;',
      'this.cash -= fee;\n    this.tradedNotional += notional;',
    ],
  ],
  'engine/risk/exposure.ts': [
    [
      'working orders do not count',
      'sign * pendingUnits(others, index, side, { own: { order, units: own } })',
      'sign * own',
    ],
  ],
  'engine/risk/limits.ts': [
    [
      'no volume limit',
      "if (exceeds(intent.quantity, limits.max_order_qty)) return 'max_order_qty';",
      '',
    ],
    [
      'no value limit',
      "if (exceeds(intent.value, limits.max_order_value)) return 'max_order_value';",
      '',
    ],
    [
      'no collar',
      "if (exceeds(intent.collarBps, limits.price_collar_bps)) return 'price_collar_bps';",
      '',
    ],
    [
      'no position limit',
      "if (exceeds(intent.positionValue, limits.max_position_pct * equity)) return 'max_position_pct';",
      '',
    ],
    [
      'a value equal to a limit counts as beyond it',
      'return value > limit * (1 + 1e-9);',
      'return value >= limit * (1 - 1e-9);',
    ],
    [
      'a limit is ten times as high',
      'return value > limit * (1 + 1e-9);',
      'return value > limit * 10;',
    ],
  ],
  'engine/risk/message-rate.ts': [
    [
      'one message beyond the limit',
      'if (this.#count < this.#limit - this.#kept) return undefined;',
      'if (this.#count <= this.#limit - this.#kept) return undefined;',
    ],
  ],
  'engine/risk/optional-limits.ts': [
    [
      'repeated executions do not latch',
      'this.#isLatched = executions.length >= repeated.count;',
      '',
    ],
  ],
  'engine/risk/permits.ts': [
    [
      'a permit can be used repeatedly',
      'this.#open.delete(override_id);\n    this.used',
      'this.used',
    ],
    ['a permit ignores the quantity', 'quantity <= permit.max_quantity * (1 + 1e-9) &&', ''],
  ],
  'engine/risk/price-collar.ts': [
    [
      'market orders have no collar',
      "if (order.type === 'market') order.reference =",
      "if (order.type === 'limit') order.reference =",
    ],
    [
      'the collar is on the wrong side',
      'isBuy ? 1 + share : 1 - share',
      'isBuy ? 1 - share : 1 + share',
    ],
  ],
  'engine/risk/reference-price.ts': [
    ['each close moves the collar', 'if (isNear || isConfirmed) {', 'if (close > 0) {'],
    ['the collar never moves again', 'if (isNear || isConfirmed) {', 'if (isNear) {'],
  ],
  'engine/risk/risk-gate.ts': [
    ['denials are ignored', 'return this.#denying ?? this.#optional', 'return this.#optional'],
    [
      'messages are not counted',
      'submitted(order: WorkingOrder): void {\n    this.countMessage();',
      'submitted(order: WorkingOrder): void {',
    ],
    ['limits are not checked', 'if (!this.#hasLimits) return undefined;', 'return undefined;'],
  ],
  'engine/run-state.ts': [
    ['prices never become stale', 'const STEPS_TO_FREEZE = 2;', 'const STEPS_TO_FREEZE = 1e9;'],
  ],
  'engine/sizing.ts': [
    [
      'sales at the venue do not count',
      'position - this.#exposure.unitsInFlight(instrument.index)',
      'position',
    ],
    ['short sales are sent', 'if (isCuttable) {', 'if (true) {'],
    [
      'purchases at the venue do not count',
      'affordableQuantity(fees, this.#exposure.uncommittedCash(), price, 1)',
      'affordableQuantity(fees, portfolio.cash, price, 1)',
    ],
    [
      'an exit is larger than the position',
      'this.wanted = Math.min(this.wanted, Math.abs(position));',
      '',
    ],
  ],
  'trading/assembler.ts': [
    ['bars are not checked', 'if (isValid(bar)) bars[symbol]', 'if (bar) bars[symbol]'],
    ['open bars count as closed', 'return clock - ms;', 'return clock;'],
  ],
  'trading/feed.ts': [['late bars are taken', 'if (time <= this.#time) {', 'if (time < -1) {']],
  'trading/host/pod/background-work.ts': [
    [
      'a halt does not wait for cancels',
      'if (left <= 0) return false;',
      'if (left <= 0) return true;',
    ],
  ],
  'trading/host/pod/order-gateway.ts': [
    ['a failed request is not repeated', 'inFlight.delete(id);', ''],
    [
      'an order is placed twice at a time',
      '} else if (!this.#placing.has(id) && mayPlace(order)) {',
      '} else if (mayPlace(order)) {',
    ],
  ],
  'trading/host/pod/pod-runner.ts': [
    [
      'a report of an unknown order ends the session',
      'if (!(error instanceof RangeError)) throw error;',
      'throw error;',
    ],
    ['unknown open orders are not canceled', 'this.work.connection!.gateway.cancel(orphan);', ''],
  ],
  'trading/host/pod/venue-connection.ts': [
    [
      'orders count as canceled without a query',
      'if (open.length === 0 && working().length === 0) return true;',
      'return true;',
    ],
  ],
  'trading/live-feed.ts': [
    [
      'missing bars are not queried',
      'const page = await exchange.history(symbol, timeframe.name, since);',
      'const page = [] as Awaited<ReturnType<typeof exchange.history>>;',
    ],
  ],
  'trading/trading-permission.ts': [
    [
      'a mismatch is ignored',
      "if (holdings.isLatched || holdings.mismatches.length > 0) return 'reconcile_mismatch';",
      '',
    ],
    ['orders do not need the server', "return 'control_unreachable';", 'return null;'],
  ],
  'trading/trading-session.ts': [
    ['a halt is not remembered', "if (this.status === 'running') this.#isHalted = true;", ''],
    [
      'a denial does not reach the engine',
      'this.#engine.risk.deny(reason ?? undefined)',
      'void reason',
    ],
  ],
  'trading/venue-orders.ts': [
    ['cancels are not sent', 'return [{ cancel: this.#orderId(order) }];', 'return [];'],
    ['orders lose their limit', '...(!Number.isNaN(limit) && { limit }),', ''],
    [
      'orders lose their time in force',
      "time_in_force: timeInForce as VenueOrder['time_in_force'],",
      "time_in_force: 'gtc',",
    ],
    ['orders are no longer post only', '...(postOnly && { post_only: true as const }),', ''],
    [
      'reported orders are sent again',
      'if (sent.isReported || !mayPlace) return [];',
      'if (!mayPlace) return [];',
    ],
    [
      'orders lose their quantity',
      '    quantity,\n    ...(!Number.isNaN(limit)',
      '    quantity: 2 * quantity,\n    ...(!Number.isNaN(limit)',
    ],
  ],
  'trading/venue.ts': [
    [
      'client order ids change after a restart',
      'return `${prefixOf(deploymentId)}${mark}-${order}`;',
      'return `${prefixOf(deploymentId)}${mark}-${order + Math.floor(performance.now() % 1e4)}`;',
    ],
  ],
  'trading/venues/reconcile.ts': [
    [
      'orders that the venue does not know count as working',
      '(await venue.find(order)) ?? notAtVenue(order, now)',
      '(await venue.find(order))!',
    ],
    [
      'orders are not queried after a restart',
      'for (const order of working) {',
      'for (const order of [] as typeof working) {',
    ],
    [
      'unknown open orders are not found',
      'return order === undefined || known.has(client_order_id)',
      'return order !== undefined || known.has(client_order_id)',
    ],
    ['holdings are not compared', 'const isHeld = held >=', 'const isHeld = true || held >='],
    ['cash is not compared', 'if (account.cash < least)', 'if (false)'],
  ],
  'trading/venues/venue-reports.ts': [
    [
      'orders are not queried at intervals',
      'await this.#wait(this.#everyMs);',
      'await this.#wait(1e9);',
    ],
    ['messages of the order stream are ignored', 'this.#receive(orders);', ''],
  ],
};

export const MUTATIONS: readonly Mutation[] = Object.entries(FAULTS).flatMap(([file, faults]) =>
  faults.map(([name, from, to]) => ({ name, file, from, to })),
);
