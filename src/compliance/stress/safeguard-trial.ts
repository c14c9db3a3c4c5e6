import { faultOf } from '../conformance/expectations.ts';
import { ACCOUNT, type World } from '../conformance/world.ts';
import { MINUTE } from '../../base/durations.ts';
import type { SessionEvent } from '../../trading/session-events.ts';
import { rounded } from './samples.ts';
import { mayBeByHost, type Meters } from './meters.ts';
import { LoadPlayer, type BarResult, type Load } from './stress-load.ts';
import { agreesWithVenue } from './venue-agreement.ts';

/** Result of a trial. */
export interface Finding {
  /** `inconclusive`: only the duration was too long, and only because of a busy host. */
  readonly status: 'pass' | 'fail' | 'inconclusive';
  /** Whether all checks hold except for durations, which depend on the machine. */
  readonly holds: boolean;
  readonly reason: string | null;
  readonly measured: Readonly<Record<string, number | null>>;
}

const SETTLE_MS = 40_000;

/** A duration by the real clock and without the time that the host ran other work, ms. */
interface Took {
  readonly ms: number;
  readonly netMs: number;
}

/** One safeguard under test: the bot at a simulated venue, and what has been found so far. */
export class Trial {
  readonly world: World;
  /** The target load of one bar. */
  readonly load: Load;
  readonly meters: Meters;
  readonly player: LoadPlayer;
  /** Events that the bot logged in earlier bars. */
  readonly log: SessionEvent[] = [];
  readonly #faults: string[] = [];
  readonly #late: string[] = [];
  /** Durations that are too long only because of a busy host. */
  readonly #lateByHost: string[] = [];
  readonly #measured: Record<string, number | null> = {};

  constructor(world: World, load: Load, meters: Meters) {
    this.world = world;
    this.load = load;
    this.meters = meters;
    this.player = new LoadPlayer(world, meters, (events) => void this.log.push(...events));
  }

  /** Notes a fault unless `holds`. @param seen what was observed instead. */
  check(holds: boolean, what: string, seen?: string): void {
    if (!holds) this.#faults.push(faultOf(what, seen));
  }

  checkDuration({ ms, netMs }: Took, mostMs: number, what: string): void {
    if (ms <= mostMs) return;
    const isByHost = mayBeByHost(ms, netMs, mostMs);
    const seen = isByHost ? `${formatMs(ms)}, ${describeNetTime(netMs)}` : formatMs(ms);
    (isByHost ? this.#lateByHost : this.#late).push(faultOf(`${what} within ${mostMs} ms`, seen));
  }

  /** Checks that settings below `spec.risk` exist. */
  checkSet(unset: readonly string[], what: string): void {
    const settings = unset.map((name) => `spec.risk.${name}`).join(', ');
    this.check(unset.length === 0, what, `none (set ${settings})`);
  }

  checkAgreement(when = 'at the end'): void {
    const what = `${when}, venue and session have the same orders and positions`;
    this.check(agreesWithVenue(this.world), what);
  }

  measure(values: Readonly<Record<string, number | null>>): void {
    for (const [name, value] of Object.entries(values)) {
      this.#measured[name] = value === null ? null : rounded(value);
    }
  }

  playLoad(): Promise<BarResult> {
    return this.player.playBar(this.load);
  }

  /** Lets pending retries and reconciliations finish. */
  settle(): Promise<void> {
    return this.world.time.pass(SETTLE_MS);
  }

  countOpenOrders(): number {
    return this.world.exchange.openOrders(ACCOUNT).length;
  }

  /** Returns whether the session ended, and the venue confirmed that no order is open. */
  async endSession(command: 'halt' | 'stop'): Promise<boolean> {
    const { world } = this;
    world.server.command(command);
    const hasEnded = await world.time.until(() => world.end !== undefined, 2 * MINUTE);
    return hasEnded && world.end?.verified === true;
  }

  conclude(): Finding {
    const failed = [...this.#faults, ...this.#late];
    const all = [...failed, ...this.#lateByHost];
    return {
      status: failed.length > 0 ? 'fail' : all.length > 0 ? 'inconclusive' : 'pass',
      holds: this.#faults.length === 0,
      reason: all.length > 0 ? all.join('; ') : null,
      measured: this.#measured,
    };
  }
}

/** Describes the part of a duration that counts against the bot. */
export function describeNetTime(netMs: number): string {
  return `and ${formatMs(netMs)} without the time that the host ran other work`;
}

function formatMs(ms: number): string {
  return `${rounded(ms)} ms`;
}
