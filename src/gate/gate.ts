import type { MiddlewareHandler } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { isId } from '../lease/claims.ts';
import type { Boot } from '../lease/known-time.ts';
import { licenseFiles, parsePin, type LicenseFiles } from './license-files.ts';
import { homeFrom } from '../base/resolve-settings.ts';
import { isNodeTooOld, oldestNode } from '../base/package-version.ts';
import type { Decision, GateStatus } from './decide.ts';
import { GateState } from './gate-state.ts';
import { requireFeature } from './hono.ts';
import { backupOf, type ReadFiles } from './license.ts';
import { watchFiles } from './watch.ts';

/** Options of `openLicenseGate`. */
export interface GateOptions {
  /** License files; by default `licenseFiles` of this machine. */
  readonly files?: ReadFiles;
  /**
   * Fingerprint of the issuer's root: only keys that descend from it verify leases. Overrides
   * `SERVICE_LICENSE_ROOT`.
   */
  readonly root?: string;
  /**
   * Product name of the program, which refuses leases for other products. If absent, leases for
   * every product are accepted.
   */
  readonly product?: string;
  /** `machineHash` of this machine, to which leases may be bound; by default from its machine id. */
  readonly machineHash?: () => Promise<string | undefined>;
  /** If false, every feature is allowed. */
  readonly enforced: boolean;
  /** Milliseconds since the Unix epoch; `Date.now` by default. */
  readonly clock?: () => number;
  /** Boot id and uptime; by default from the system. */
  readonly boot?: () => Boot;
  /** Interval for reading the files even without change events, ms; at most and by default 30,000. */
  readonly pollMs?: number;
  /** Called with a changed status after it takes effect. An error that it throws goes to `warn`. */
  readonly onChange?: (status: GateStatus) => void;
  /** Called when changes cannot be noticed or reported at once. An error that it throws is ignored. */
  readonly warn?: (text: string) => void;
}

/** Answers from memory whether features are licensed, and follows changes of the license files. */
export interface LicenseGate {
  /** Takes less than a microsecond. @param feature the name of an entitlement. */
  check(feature: string): Decision;
  /** Hono middleware that passes requests only while the feature is licensed. */
  requireFeature(feature: string): MiddlewareHandler;
  status(): GateStatus;
  /** Stops watching the files; `check` continues with what was read last. */
  close(): Promise<void>;
}

function refuseOldNode(): void {
  if (!isNodeTooOld()) return;
  const found = process.versions.node;
  throw new ServiceError(
    'failure',
    `the license gate needs Node ${oldestNode()} or newer, not ${found}`,
    { remedy: `Run the program with Node ${oldestNode()} or newer.` },
  );
}

const LONGEST_POLL_MS = 30_000;

/** Delay of a second read after a change: two writes within one file system tick can look the same. */
const REREAD_MS = 200;

/**
 * Reads and watches the license files. The gate also opens without usable files, and recovers when
 * they become good. What it has verified stays in force while it is better than the files, which may
 * be missing, truncated, tampered with or older. Once a lease is in force, the gate accepts only keys
 * that the accepted ones vouch for, and only leases of the same issuer and installation. It refuses a
 * lease for another `product`, or one that is bound to another device or machine.
 *
 * @throws ServiceError `invalid_setting` for a `root` that is not a fingerprint, or a `product` that
 * no lease can name; `failure` on a Node older than 24.15.
 */
export async function openLicenseGate(options: GateOptions): Promise<LicenseGate> {
  refuseOldNode();
  const warn = (text: string): void => {
    try {
      options.warn?.(text);
    } catch {
      // A failing callback must not stop the gate.
    }
  };
  const files = filesOf(options);
  const pollMs = Math.min(options.pollMs ?? LONGEST_POLL_MS, LONGEST_POLL_MS);
  const state = new GateState(files, {
    ...options,
    product: productOf(options),
    endingMs: 2 * LONGEST_POLL_MS,
    onChange(status) {
      try {
        options.onChange?.(status);
      } catch (error) {
        warn(`onChange failed for a change of the license: ${String(error)}`);
      }
    },
  });
  const reading = inTurn(
    () => state.read(),
    (error) => warn(`the license could not be read: ${String(error)}`),
  );
  let reread: NodeJS.Timeout | undefined;
  const watch = await watchFiles(
    [files.lease, backupOf(files.lease), files.keyset, ...(files.root ? [files.root] : [])],
    () => {
      void reading.start();
      clearTimeout(reread);
      reread = setTimeout(() => void reading.start(), REREAD_MS).unref();
    },
    (error) =>
      warn(`changes of the license are noticed within ${pollMs / 1000} s, not at once: ${error}`),
  );
  await reading.start();
  const polling = setInterval(() => void reading.start(), pollMs).unref();
  const check = (feature: string): Decision => state.check(feature);
  return {
    check,
    requireFeature: (feature) => requireFeature(check, feature),
    status: () => state.status(),
    async close() {
      clearInterval(polling);
      await watch.close();
      clearTimeout(reread);
      await reading.stop();
    },
  };
}

function filesOf({ files = ownFiles(), root }: GateOptions): ReadFiles {
  return root === undefined ? files : { ...files, pin: parsePin(root, 'the option root') };
}

/** @throws ServiceError `invalid_setting` */
function productOf({ product }: GateOptions): string | undefined {
  if (product === undefined || isId(product)) return product;
  throw new ServiceError(
    'invalid_setting',
    `the option product must be 1 to 128 visible ASCII characters, not '${product}'`,
  );
}

function ownFiles(): LicenseFiles {
  return licenseFiles(homeFrom(process.env, process.cwd()), process.env);
}

/** Runs `work` one call at a time; calls of `start` while it runs lead to one more run. */
function inTurn(work: () => Promise<void>, onError: (error: unknown) => void) {
  let wanted = false;
  let working: Promise<void> | undefined;
  const runAll = async (): Promise<void> => {
    while (wanted) {
      wanted = false;
      await work().catch(onError);
    }
    working = undefined;
  };
  const start = (): Promise<void> => {
    wanted = true;
    return (working ??= runAll());
  };
  const stop = (): Promise<void> => {
    wanted = false;
    return working ?? Promise.resolve();
  };
  return { start, stop };
}
