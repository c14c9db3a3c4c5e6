/** Conformance test of a bot at a simulated venue, with the session and the exchange adapter of production. */
import { createHash } from 'node:crypto';
import { requireCcxt } from '../../trading/venues/ccxt-client.ts';
import { EXERCISED, type Case, type Part } from './case.ts';
import { CATALOGUE } from './case-catalogue.ts';
import {
  conclude,
  faultOf,
  finalOf,
  Inconclusive,
  type Check,
  type Final,
} from './expectations.ts';
import { playPart } from './play.ts';
import type { TriedBot } from './tried-session.ts';
import { inWorld, type Alert } from './world.ts';

export type CaseStatus = 'pass' | 'fail' | 'inconclusive' | 'not_applicable';

export interface CaseResult extends Pick<Case, 'id' | 'title' | 'stimulus' | 'expectation'> {
  /** Citations as `article` resolves them. */
  readonly articles: readonly string[];
  readonly status: CaseStatus;
  /** Why it did not pass: for a failed case, the expectations that do not hold. */
  readonly reason: string | null;
  /** SHA-256 of its lines of evidence; null for a case that was not played. */
  readonly evidence_hash: string | null;
  /** Open orders and holdings at the end of each part, by the venue and by the session. */
  readonly parts: readonly (Final & {
    readonly part: string;
    readonly messages: { readonly venue: number; readonly bot: number };
  })[];
  readonly alerts: readonly Alert[];
}

export interface ConformanceResult {
  readonly schema: 'conformance/1';
  readonly environment: 'simulated_venue';
  /** Article 6(1) requires the system of the venue or of the access provider. */
  readonly discharges_art6: false;
  /** Report of the venue's own facility, RTS 7 Article 9(5), which people add. */
  readonly venue_report: null;
  readonly seed: number;
  readonly cases: readonly CaseResult[];
  readonly counts: Readonly<Record<CaseStatus | 'not_run', number>>;
  /** SHA-256 over the hashes of the cases. */
  readonly evidence_hash: string;
}

export interface ConformanceOptions {
  readonly seed: number;
  /** Ids; all cases by default. */
  readonly cases?: readonly string[] | undefined;
  /** Called after each case. */
  readonly onProgress?: (done: number, of: number) => void;
  /** Called with each line of evidence, as JSON without a newline. */
  readonly onEvidence?: (line: string) => void;
}

/**
 * Plays cases one after another. The result depends only on the bot, the cases and the seed. Replaces
 * the clocks of its thread meanwhile; see `inVirtualTime`.
 *
 * @throws ServiceError `conflict` if ccxt, which the adapter of exchanges needs, is not installed.
 */
export async function runConformance(
  tried: TriedBot,
  { seed, cases: ids, onProgress, onEvidence }: ConformanceOptions,
): Promise<ConformanceResult> {
  const chosen = CATALOGUE.filter(({ id }) => ids === undefined || ids.includes(id));
  const cases: CaseResult[] = [];
  requireCcxt();
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

interface Played {
  readonly parts: CaseResult['parts'][number][];
  readonly alerts: Alert[];
  readonly faults: string[];
  /** Why a part could not be judged. */
  undecided: string | undefined;
}

async function runCase(
  tried: TriedBot,
  one: Case,
  seed: number,
  onEvidence: ((line: string) => void) | undefined,
): Promise<CaseResult> {
  const { id, title, articles, stimulus, expectation, exercises = [], scope, parts } = one;
  const known = { id, title, articles, stimulus, expectation };
  const nothing = { evidence_hash: null, parts: [], alerts: [] };
  const why = whyUnfit(tried) ?? whyNotApplicable(tried, one);
  if (why !== undefined) return { ...known, status: 'not_applicable', reason: why, ...nothing };
  const hash = createHash('sha256');
  const write = (line: object): void => {
    const text = JSON.stringify({ case: id, ...line });
    hash.update(`${text}\n`);
    onEvidence?.(text);
  };
  write({ exercises: [...EXERCISED, ...exercises], ...(scope && { scope }) });
  const played: Played = { parts: [], alerts: [], faults: [], undecided: undefined };
  for (const part of parts) await runPart(tried, part, seed, played, write);
  const { faults, undecided, alerts } = played;
  const status = faults.length > 0 ? 'fail' : undecided === undefined ? 'pass' : 'inconclusive';
  return {
    ...known,
    status,
    reason: faults.length > 0 ? faults.join('; ') : (undecided ?? null),
    evidence_hash: hash.digest('hex'),
    parts: played.parts,
    alerts,
  };
}

/** Runs a part in its own `World`, so that it does not depend on other parts. */
function runPart(
  tried: TriedBot,
  part: Part,
  seed: number,
  played: Played,
  write: (line: object) => void,
): Promise<void> {
  const { name } = part;
  const check: Check = (holds, what, seen) => {
    write({ part: name, check: what, holds, ...(seen !== undefined && { seen }) });
    if (!holds) played.faults.push(`${name}: ${faultOf(what, seen)}`);
  };
  return inWorld(tried, { ...part, seed }, async (world) => {
    write({ part: name, seed, instruments: world.symbols, sizes: world.sizes });
    try {
      if (!(world.sizes.quantity > 0)) throw new Inconclusive(NO_ROOM);
      await playPart(world, part, check);
      await conclude(world, check, part);
    } catch (error) {
      if (error instanceof Inconclusive) played.undecided = error.message;
      else check(false, 'the part runs without an error of the test', String(error));
    }
    for (const line of world.exchangeLog) write({ part: name, side: 'venue', ...line });
    for (const line of world.botLog) write({ part: name, side: 'bot', ...line });
    const final = finalOf(world);
    write({ part: name, final, alerts: world.alerts });
    const messages = { venue: world.exchangeLog.length, bot: world.botLog.length };
    played.parts.push({ part: name, ...final, messages });
    played.alerts.push(...world.alerts);
  });
}

const NO_ROOM = 'The limits of the bot leave no room for an order that can be filled partly.';

/** Why a bot cannot be tested at all. */
function whyUnfit({ bot: { spec } }: TriedBot): string | undefined {
  const { kind, engine } = spec.spec;
  if (kind !== 'trading') return 'The bot does not trade.';
  if (engine.account === 'cash') return undefined;
  return 'The bot needs a margin account and cannot be deployed at a venue, which requires a cash account.';
}

function whyNotApplicable({ bot }: TriedBot, { notApplicable }: Case): string | undefined {
  if (notApplicable === undefined || typeof notApplicable === 'string') return notApplicable;
  const { symbols } = bot.spec.spec.universe;
  return symbols.length > 1 ? undefined : notApplicable.oneInstrument;
}
