import { licenseFiles } from '../../../gate/license-files.ts';
import { defineVerb } from '../../verb.ts';

/** The exit code of service managers for a service that does not run. */
const NOT_RUNNING = 3;

export const verb = defineVerb({
  summary: 'show whether the daemon runs, and when it next requests a lease',
  description:
    'Shows whether the daemon runs, when and why it next requests a lease, the results of the last attempts, and why the license keys are trusted. Exits with 0 if the daemon runs, otherwise with 3.',
  examples: ['daemon status', 'daemon status --json | jq .next_attempt_at'],
  async run({ settings: { home }, io }) {
    const { viewDaemon } = await import('../../daemon.ts');
    const { readLicense, statusOf } = await import('../../../gate/license.ts');
    const { deniedSince } = await import('../../../../daemon/denial.ts');
    const { describeNextAttempt } = await import('../../../../daemon/next-attempt.ts');
    const now = Date.now();
    const { isRunning, note: daemon, state } = await viewDaemon(home, io.env);
    const { describeTrust } = await import('../../../gate/describe-trust.ts');
    const files = licenseFiles(home, io.env);
    // The pin in the environment of the running daemon can differ from the one here.
    const pinned = isRunning ? daemon?.license_root : undefined;
    const pin = pinned === undefined ? files.pin : (pinned ?? undefined);
    const license = await readLicense({ ...files, pin }, now);
    const { leases, refused, running, trusted } = license;
    const [held] = leases;
    const status = held && statusOf(held, now, running);
    const { last_success_at, last_error, failures_in_row, refused_keyset } = state;
    const denied_since = deniedSince(state);
    const lease =
      held && status
        ? {
            state: status.state,
            lease_id: held.claims.lease_id,
            expires_at: held.claims.expires_at,
            grace_ends_at: held.claims.grace_ends_at,
          }
        : null;
    return {
      data: {
        running: isRunning,
        home,
        pid: isRunning ? (daemon?.pid ?? null) : null,
        version: daemon?.version ?? null,
        started_at: daemon?.started_at ?? null,
        stopped_at: daemon?.stopped_at ?? null,
        server_url: daemon?.server_url ?? null,
        next_attempt_at: state.next_attempt_at,
        next_attempt_because: state.next_attempt_because,
        last_success_at,
        last_error,
        denied_since: denied_since ?? null,
        failures_in_row,
        lease,
        trust: trusted
          ? { by: trusted.by, pin: trusted.pin ?? null, root: trusted.fingerprint ?? null }
          : null,
        refused_keyset,
      },
      exitCode: isRunning ? 0 : NOT_RUNNING,
      show(out) {
        if (isRunning && daemon !== undefined) {
          const { pid, started_at, version, server_url } = daemon;
          out.line(`The daemon runs as process ${pid}, since ${started_at}.`);
          out.line(`Its version is ${version}, and its server is ${server_url}.`);
        } else if (isRunning) {
          out.line('The daemon runs, but its process ID is unknown.');
        } else {
          out.line(`No daemon runs for ${home}; \`service-local daemon start\` starts one.`);
          if (daemon) out.line(howItEnded(daemon));
        }
        if (lease === null) {
          const bad = refused.find(({ reason }) => reason !== 'missing');
          out.line(`lease: none${bad ? ` that is valid: ${bad.path}: ${bad.detail}` : ''}`);
        } else {
          const { state: is, expires_at, grace_ends_at } = lease;
          out.line(`lease: ${is}; it expires at ${expires_at}, its grace ends at ${grace_ends_at}`);
        }
        if (trusted !== undefined) out.line(`keys: ${describeTrust(trusted)}`);
        if (refused_keyset !== null) {
          const { at, message } = refused_keyset;
          out.line(`keys of the server rejected at ${at}: ${message}`);
        }
        if (denied_since !== undefined)
          out.line(`the server has denied renewal since ${denied_since}`);
        if (isRunning) out.line(describeNextAttempt(state));
        if (last_success_at) out.line(`last success at ${last_success_at}`);
        if (last_error) {
          const { at, code, message } = last_error;
          out.line(`last error at ${at}: ${message} (${code})`);
          if (failures_in_row > 1) out.line(`failures in a row: ${failures_in_row}`);
        }
      },
    };
  },
});

function howItEnded(daemon: { readonly started_at: string; readonly stopped_at: string | null }) {
  if (daemon.stopped_at !== null) return `The last daemon was stopped at ${daemon.stopped_at}.`;
  return `The last daemon, started at ${daemon.started_at}, was killed, or the machine was switched off.`;
}
