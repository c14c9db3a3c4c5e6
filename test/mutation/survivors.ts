/** Mutants that no test catches, by name, and why they may stay. */
export const SURVIVORS: Readonly<Record<string, string>> = {
  "daemon/materialize.ts: constant: '' → 'mutant' (5)":
    'equivalent: without given keys there is no fault, and neither text holds keys',
  "daemon/loop.ts: condition is true: this.#license.isOutdated || !(['lease', 'backup', 'keyset', 'root'] as const).ev… → true":
    'equivalent: reading unchanged files again has the same result',
  'src/fleet/halts/halt.ts: constant: 0 → 1 (4)': 'equivalent: the shortest timer takes 1 ms',
  'src/engine/risk/optional-limits.ts: boundary: this.#prices.at(-1)! * this.#sign >= price * this.#sign → (this.#prices.at(-1)! * this.#sign > price * this.#sign)':
    'equivalent: of equal prices, the newest alone remains the extreme as long',
  'src/engine/risk/risk-gate.ts: condition is true: recorded > 0 → true':
    'equivalent: before the first step, there is neither equity nor a time to follow',
  'src/engine/strategies/rsi-reversion.ts: boundary: strength.value < params.lower → (strength.value <= params.lower)':
    'decides only after a fill, at an index that equals the limit to the last bit',
  'src/trading/venues/market-data.ts: logic: missing().length > 0 && performance.now() - this.#loadedAt > RELOAD_EVERY_MS → (missing().length > 0 || performance.now() - this.#loadedAt > RELOAD_EVERY_MS)':
    'markets are reloaded more often than needed, with the same result',
  'src/trading/venues/venue-reports.ts: removal: this.#announced.add(id); → ;':
    'reconnects an order stream that works, which loses no report',
  'src/trading/host/pod/server-connection.ts: condition is false: this.#isLogBlocked → false (2)':
    'tries a blocked log again without a pause, with the same result',
  "src/trading/host/threads/session-thread.ts: removal: port.on('close', () => { const left = new Error('the worker has abandoned the se… → ;":
    'an abandoned session keeps its memory, which no test measures, but can write nothing',
  'src/engine/series/computation.ts: boundary: length > this.columns[0]!.length → (length >= this.columns[0]!.length)':
    'equivalent: full columns are copied into longer ones earlier than needed',
  'src/trading/host/pod/server-connection.ts: result: return undefined; → return; (6)':
    'equivalent: both return undefined',
  'src/trading/host/pod/trade.ts: default: hosted.session?.state() ?? journal.state → journal.state':
    'without the claim, only what is written counts, and the state is not used but to be printed',
  'src/trading/sandbox/process.ts: constant: 0 → 1 (7)':
    'the result of check() is not read if a parameter is invalid',
  'src/trading/host/pod/runner-journal.ts: await: await store.dropArchived() → store.dropArchived()':
    'the log has the same events while those that are also in the archive are being deleted',
  "src/trading/host/pod/pod-runner.ts: condition is true: stage === 'trading' → true":
    'equivalent: the stage before the others is never entered',
  'src/trading/host/pod/inbox.ts: boundary: this.#behind.length < MOST_BEHIND → (this.#behind.length <= MOST_BEHIND) (2)':
    'one item more may wait',
  'src/trading/venues/ccxt-client.ts: boundary: this.#blockedForMs() > LONGEST_URGENT_WAIT_MS → (this.#blockedForMs() >= LONGEST_URGENT_WAIT_MS)':
    'decides only if the wait equals the limit to the millisecond',
  'src/trading/host/threads/threaded-session.ts: constant: false → true':
    'decides only for a session whose engine failed, which here ends its thread',
  'src/trading/assembler.ts: constant: 1 → 0 (4)': 'a known bar is fetched again and ignored',
  'src/trading/host/threads/session-threads.ts: condition is false: isOurs || bug !== undefined → false':
    'the session ends with the same error, and a task that is no longer ours records no end',
};
