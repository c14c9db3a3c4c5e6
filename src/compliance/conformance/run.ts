/** The conformance run: a bot, with the session code that production has, at a simulated venue. */
import { createHash } from 'node:crypto';
import { conclude, faultOf, finalOf, Inconclusive } from './case.ts';
import type { Case, Check, CaseStatus, Evidence, Play } from './case.ts';
import { CATALOGUE } from './catalogue.ts';
import { inWorld, type Alert, type TriedBot } from './world.ts';

export interface CaseResult extends Pick<Case, 'id' | 'title' | 'stimulus' | 'expectation'> {
  /** See `article`. */
  readonly articles: readonly string[];
  readonly status: CaseStatus;
  /** Why it did not pass; what does not hold, of a case that failed. */
  readonly reason: string | null;
  /** SHA-256 of its lines of evidence; null of a case that was not played. */
  readonly evidence_hash: string | null;
  /** Of each part: open orders and positions as each side says at its end. */
  readonly parts: readonly (Pick<Evidence, 'part' | 'orders' | 'positions' | 'cash'> & {
    readonly messages: { readonly venue: number; readonly bot: number };
  })[];
  readonly alerts: readonly Alert[];
}

export interface ConformanceResult {
  readonly schema: 'conformance/1';
  readonly environment: 'simulated_venue';
  /** Article 6(1) asks for the system of the venue or of the access provider. */
  readonly discharges_art6: false;
  /** For the report of a venue's own facility, RTS 7 Article 9(5): to be added by people. */
  readonly venue_report: null;
  readonly seed: number;
  readonly cases: readonly CaseResult[];
  readonly counts: Readonly<Record<CaseStatus | 'not_run', number>>;
  /** SHA-256 over those of the cases. */
  readonly evidence_hash: string;
}

export interface ConformanceOptions {
  readonly seed: number;
  /** Ids; all of the catalogue when absent. */
  readonly cases?: readonly string[] | undefined;
  /** Told after each case: how many of how many. */
  readonly onProgress?: (done: number, of: number) => void;
  /** Handed the evidence as it comes: lines of JSON, without what ends them. */
  readonly onEvidence?: (line: string) => void;
}

/**
 * Plays the cases, one after the other, each of its parts in a world of its own: the result is decided
 * by the bot, the cases and the seed. It takes over the clocks of its thread; see `inVirtualTime`.
 */
export async function runConformance(
  tried: TriedBot,
  { seed, cases: ids, onProgress, onEvidence }: ConformanceOptions,
): Promise<ConformanceResult> {
  const chosen = CATALOGUE.filter(({ id }) => ids === undefined || ids.includes(id));
  const cases: CaseResult[] = [];
  for (const one of chosen) {
    cases.push(await runCase(tried, one, seed, onEvidence));
    onProgress?.(cases.length, chosen.length);
  }
  const count = (status: CaseStatus): number => cases.filter((one) => one.status === status).length;
  const hashes = cases.map(({ id, status, evidence_hash }) => [id, status, evidence_hash]);
  return {
    schema: 'conformance/1',
    environment: 'simulated_venue',
    discharges_art6: false,
    venue_report: null,
    seed,
    cases,
    counts: {
      pass: count('pass'),
      fail: count('fail'),
      inconclusive: count('inconclusive'),
      not_applicable: count('not_applicable'),
      not_run: CATALOGUE.length - cases.length,
    },
    evidence_hash: createHash('sha256').update(JSON.stringify(hashes)).digest('hex'),
  };
}

async function runCase(
  tried: TriedBot,
  { id, title, articles, stimulus, expectation, notApplicable, play }: Case,
  seed: number,
  onEvidence: ((line: string) => void) | undefined,
): Promise<CaseResult> {
  const known = { id, title, articles, stimulus, expectation };
  const nothing = { evidence_hash: null, parts: [], alerts: [] };
  const why = unfit(tried) ?? notApplicable?.(tried);
  if (why !== undefined || play === undefined) {
    return { ...known, status: 'not_applicable', reason: why ?? 'It is not played.', ...nothing };
  }
  const hash = createHash('sha256');
  const write = (line: object): void => {
    const text = JSON.stringify({ case: id, ...line });
    hash.update(`${text}\n`);
    onEvidence?.(text);
  };
  const parts: CaseResult['parts'][number][] = [];
  const alerts: Alert[] = [];
  const faults: string[] = [];
  let undecided: string | undefined;
  const inCase: Play = async (name, options, part) => {
    const check: Check = (holds, what, seen) => {
      write({ part: name, check: what, holds, ...(seen !== undefined && { seen }) });
      if (!holds) faults.push(`${name}: ${faultOf(what, seen)}`);
    };
    // Each part begins alike, whatever was played before it.
    await inWorld(tried, { ...options, seed }, async (world) => {
      write({ part: name, seed, instruments: world.symbols, sizes: world.sizes });
      try {
        if (!(world.sizes.quantity > 0)) throw new Inconclusive(NO_ROOM);
        await part(world, check);
        await conclude(world, check, options);
      } catch (error) {
        if (error instanceof Inconclusive) undecided = error.message;
        else check(false, 'the part can be played', String(error));
      }
      for (const line of world.venueLog) write({ part: name, side: 'venue', ...line });
      for (const line of world.botLog) write({ part: name, side: 'bot', ...line });
      const final = finalOf(world);
      write({ part: name, final, alerts: world.alerts });
      parts.push({
        part: name,
        ...final,
        messages: { venue: world.venueLog.length, bot: world.botLog.length },
      });
      alerts.push(...world.alerts);
    });
  };
  try {
    await play(inCase);
  } catch (error) {
    faults.push(`it could not be played: ${String(error)}`);
  }
  const status = faults.length > 0 ? 'fail' : undecided === undefined ? 'pass' : 'inconclusive';
  return {
    ...known,
    status,
    reason: faults.length > 0 ? faults.join('; ') : (undecided ?? null),
    evidence_hash: hash.digest('hex'),
    parts,
    alerts,
  };
}

const NO_ROOM = 'The limits of the bot leave no room for an order of which a part can be filled.';

/** Why a bot cannot be tried at all. */
function unfit({ bot: { spec } }: TriedBot): string | undefined {
  const { kind, engine } = spec.spec;
  if (kind !== 'trading') return 'The bot does not trade.';
  if (engine.account === 'cash') return undefined;
  return 'At a venue a bot trades in a cash account alone, and this one has another: it cannot be deployed.';
}
