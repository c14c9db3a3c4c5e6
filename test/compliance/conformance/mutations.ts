/** A fault in the handling of orders: a text of the source, and what stands in its place. */
export interface Mutation {
  readonly name: string;
  /** Folder of `src`; the text is in one file of it, and its first place is meant. */
  readonly folder: 'engine' | 'trading' | 'runner';
  readonly from: string;
  readonly to: string;
}

const of =
  (folder: Mutation['folder']) =>
  ([name, from, to]: readonly [string, string, string]): Mutation => ({ name, folder, from, to });

export const MUTATIONS: readonly Mutation[] = [
  ...(
    [
      // What reports come to: venue-desk.ts.
      ['fills are added up', 'sum(order.filled, report.filled)', '(order.filled + report.filled)'],
      ['costs are added up', 'sum(sent.cost, report.cost)', '(sent.cost + report.cost)'],
      ['a late report counts', 'Math.abs(told) > Math.abs(known) ? told : known', 'told'],
      [
        'bought is taken for sold',
        "const sign = order.side === 'buy' ? 1 : -1;\n    const units",
        "const sign = order.side === 'buy' ? -1 : 1;\n    const units",
      ],
      ['a report is not noticed', 'sent.isReported = true;', ''],
      ['numbers are not checked', 'checkNumbers(report);', ''],
      [
        'prices are rounded against the order',
        "order.limit = ontoGrid(order.limit, tick, isBuy ? 'down' : 'up');",
        "order.limit = ontoGrid(order.limit, tick, isBuy ? 'up' : 'down');",
      ],
      ['prices are not rounded', 'desk.roundPrices(order);', ''],
      [
        'quantities are not rounded',
        "return ontoGrid(quantity, this.#rules[index]!.step, 'down');",
        'return quantity;',
      ],
      ['day orders are sent', "if (timeInForce === 'day') return false;", ''],
      [
        'orders of groups are sent',
        'order.stopLoss === undefined &&\n      order.ocoGroup === 0',
        'order.stopLoss === undefined',
      ],
      [
        'why it was canceled is forgotten',
        'return canceling ?? told ?? (atOnce',
        'return told ?? (atOnce',
      ],
      [
        'refusals are classified as one',
        "if (status === 'rejected') return told ?? 'refused_by_venue';",
        "if (status === 'rejected') return 'refused_by_venue';",
      ],
      // What becomes of orders: engine.ts.
      [
        'a part ends the order',
        "if (report.status === 'filled' || order.filled >= order.quantity * (1 - 1e-12)) {\n          order.status",
        "if (report.status === 'filled' || order.filled > 0) {\n          order.status",
      ],
      [
        'the end of an order is ignored',
        "} else if (report.status !== 'open') {",
        "} else if (report.status === 'canceled') {",
      ],
      [
        'a cancel by the venue is ignored',
        "} else if (report.status !== 'open') {",
        "} else if (report.status !== 'open' && report.status !== 'canceled') {",
      ],
      [
        'the book of fills turns the sign',
        'execution.quantity = quantity;\n    execution.price = price;\n    execution.reference = price;',
        'execution.quantity = -quantity;\n    execution.price = price;\n    execution.reference = price;',
      ],
      [
        'the price of a fill is not booked',
        'execution.price = price;\n    execution.reference = price;\n    execution.fee = fee;\n    execution.slippage = 0;',
        'execution.price = instrument.close;\n    execution.reference = price;\n    execution.fee = fee;\n    execution.slippage = 0;',
      ],
      [
        'the strategy hears of no fill',
        'this.#fills.push({ order, instrument, quantity, price, fee });',
        '',
      ],
      [
        'a cancel takes effect at once',
        'const isThere = sent !== undefined &&',
        'const isThere = sent === undefined &&',
      ],
      ['a cancel is not asked for', 'sent.canceling = reason;', ''],
      [
        'a halt cancels nothing',
        "for (const order of this.#working) this.#withdraw(order, 'halted');",
        '',
      ],
      [
        'sales at the venue do not count',
        "position - this.#unfilled(index, 'sell')\n        :",
        'position\n        :',
      ],
      [
        'short sales are sent',
        "if (!isCut) return sign < 0 ? 'short_not_allowed' : 'insufficient_funds';",
        '',
      ],
      [
        'purchases at the venue do not count',
        'this.#uncommittedCash(), price, 1)',
        'this.#portfolio.cash, price, 1)',
      ],
      [
        'an exit is larger than the position',
        "if (position * sign >= 0) return 'nothing_to_reduce';\n      wanted = Math.min(wanted, Math.abs(position));",
        "if (position * sign >= 0) return 'nothing_to_reduce';",
      ],
      ['denials are ignored', 'if (this.#denying !== undefined) return this.#denying;', ''],
      ['unfit orders are sent', "if (!this.#supports(order)) return 'not_supported_by_venue';", ''],
      [
        'messages are not counted',
        'this.#submitted += 1;\n    this.#countMessage();',
        'this.#submitted += 1;',
      ],
      [
        'working orders do not count',
        'Math.abs(after + this.#workingBeside(order))',
        'Math.abs(after)',
      ],
      ['no limit is looked at', 'if (!this.#hasRisk) return undefined;', 'return undefined;'],
      // What the market is doing, and what it undoes: venue-desk.ts, engine.ts.
      ['a halt is not heeded', "if (phase === 'halted' ||", 'if ('],
      ['a closed market is not heeded', "if (phase === 'closed') return 'market_closed';", ''],
      [
        'what an auction does not take is sent',
        "return phase === 'auction' && !isPatient ?",
        "return phase === 'auction' && isPatient ?",
      ],
      ['rules stay as they were', 'this.#desk.revise(rules);', ''],
      ['a halt leaves no doubt', 'if (isResumed) this.resuming.add(index);', ''],
      [
        'what rests is not looked at after a halt',
        "if (bps > this.#config.risk.price_collar_bps) this.#withdraw(order, 'price_collar_bps');",
        '',
      ],
      [
        'an instrument that is gone is sent orders',
        "if (rules === undefined) return 'unknown_symbol';",
        'if (rules === undefined) return undefined;',
      ],
      ['corrections are passed over', 'isCorrection ? told : farther', 'farther'],
      [
        'corrections are booked without their price',
        'this.cash -= quantity * price + fee;\n    this.tradedNotional += notional;',
        'this.cash -= fee;\n    this.tradedNotional += notional;',
      ],
      [
        'corrections are not told',
        'this.#journal.corrected(order, execution, after, portfolio.cash);',
        '',
      ],
      // Collars: risk.ts, engine.ts.
      ['each close moves the collar', 'if (isNear || isConfirmed) {', 'if (close > 0) {'],
      ['the collar never moves again', 'if (isNear || isConfirmed) {', 'if (isNear) {'],
      [
        'orders at the market have no collar',
        "if (order.type === 'market') order.reference =",
        "if (order.type === 'limit') order.reference =",
      ],
      [
        'the collar is on the wrong side',
        'isBuy ? 1 + share : 1 - share',
        'isBuy ? 1 - share : 1 + share',
      ],
      ['prices stay good for ever', 'const STEPS_TO_FREEZE = 2;', 'const STEPS_TO_FREEZE = 1e9;'],
      [
        'a permit is used again and again',
        'this.#open.delete(override_id);\n    this.used',
        'this.used',
      ],
      ['a permit is for every order', 'quantity <= permit.max_quantity * (1 + 1e-9) &&', ''],
      // Limits: risk.ts.
      [
        'no limit of volume',
        "if (exceeds(intent.quantity, limits.max_order_qty)) return 'max_order_qty';",
        '',
      ],
      [
        'no limit of value',
        "if (exceeds(intent.value, limits.max_order_value)) return 'max_order_value';",
        '',
      ],
      [
        'no collar',
        "if (exceeds(intent.collarBps, limits.price_collar_bps)) return 'price_collar_bps';",
        '',
      ],
      [
        'no limit of the position',
        "if (exceeds(intent.positionValue, limits.max_position_pct * equity)) return 'max_position_pct';",
        '',
      ],
      [
        'a limit is broken where it is kept',
        'return value > limit * (1 + 1e-9);',
        'return value >= limit * (1 - 1e-9);',
      ],
      [
        'a limit is ten times as wide',
        'return value > limit * (1 + 1e-9);',
        'return value > limit * 10;',
      ],
      ['no latch', 'this.#isLatched = executions.length >= repeated.count;', ''],
      [
        'one message too many',
        'if (this.#count < this.#limit - this.#kept) return undefined;',
        'if (this.#count <= this.#limit - this.#kept) return undefined;',
      ],
    ] as const
  ).map(of('engine')),
  ...(
    [
      // What the venue is asked for: venue-session.ts, session.ts.
      [
        'cancels are not sent',
        'if (sent.canceling !== undefined) requests.push({ cancel: this.#named(order) });',
        'if (sent.canceling !== undefined) continue;',
      ],
      ['orders lose their limit', '...(!Number.isNaN(limit) && { limit }),', ''],
      [
        'orders lose their time in force',
        "time_in_force: timeInForce as VenueOrder['time_in_force'],",
        "time_in_force: 'gtc',",
      ],
      ['orders are no longer post only', '...(postOnly && { post_only: true as const }),', ''],
      [
        'orders are sent though reported',
        'else if (!sent.isReported && isRunning) {',
        'else if (isRunning) {',
      ],
      [
        'orders lose their size',
        '    quantity,\n    ...(!Number.isNaN(limit)',
        '    quantity: 2 * quantity,\n    ...(!Number.isNaN(limit)',
      ],
      ['a halt is not remembered', "if (this.status === 'running') this.#isHalted = true;", ''],
      [
        'a denial does not reach the engine',
        'this.engine.risk.deny(reason ?? undefined)',
        'void reason',
      ],
      // What is compared with the venue: reconcile.ts, venue-reports.ts.
      [
        'lost orders count as working',
        '(await venue.find(order)) ?? notAtVenue(order, now)',
        '(await venue.find(order))!',
      ],
      [
        'orders are not asked for after a restart',
        'for (const order of working) {',
        'for (const order of [] as typeof working) {',
      ],
      [
        'orders of nobody are left open',
        'return order === undefined || known.has(client_order_id)',
        'return order !== undefined || known.has(client_order_id)',
      ],
      ['holdings are not compared', 'const isHeld = held >=', 'const isHeld = true || held >='],
      ['cash is not compared', 'if (account.cash < least)', 'if (false)'],
      [
        'orders are not asked for at intervals',
        'await this.#wait(this.#everyMs);',
        'await this.#wait(1e9);',
      ],
      ['news of orders are passed over', 'this.#hear(orders);', ''],
      [
        'orders are called otherwise after a restart',
        'return `${prefixOf(deploymentId)}${order}`;',
        'return `${prefixOf(deploymentId)}${order + (globalThis as never as { k?: number }).k!}`;',
      ],
      // Bars: assembler.ts, feed.ts.
      ['bars are not checked', 'if (isValid(bar)) bars[symbol]', 'if (bar) bars[symbol]'],
      ['late bars are taken', 'if (time <= this.#time) {', 'if (time < -1) {'],
      ['open bars are taken for closed', 'return clock - ms;', 'return clock;'],
      [
        'what is missing is not asked for',
        'const page = await exchange.history(symbol, timeframe.name, since);',
        'const page = [] as Awaited<ReturnType<typeof exchange.history>>;',
      ],
    ] as const
  ).map(of('trading')),
  ...(
    [
      ['what failed is not asked for again', 'asking.delete(id);', ''],
      [
        'it is asked for twice at a time',
        'if (!placing.has(id) && mayPlace(order)) {',
        'if (mayPlace(order)) {',
      ],
      [
        'nothing open is taken for granted',
        'if (open.length === 0 && working().length === 0) return true;',
        'return true;',
      ],
      ['a halt waits for no answer', 'if (left <= 0) return false;', 'if (left <= 0) return true;'],
      [
        'what the venue tells in vain ends it',
        'if (!(error instanceof RangeError)) throw error;',
        'throw error;',
      ],
      [
        'a mismatch is ignored',
        "if (mismatches !== undefined && mismatches.length > 0) return 'reconcile_mismatch';",
        '',
      ],
      ['the server is not needed', "return 'control_unreachable';", 'return null;'],
      [
        'orders that nobody knows are not canceled',
        'this.#work.connection!.gateway.cancel(orphan);',
        '',
      ],
    ] as const
  ).map(of('runner')),
];
