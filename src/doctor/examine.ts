import { runChecks, worstStatus, type CheckResult } from './run-checks.ts';
import { DAEMON_CHECKS } from './checks/daemon.ts';
import { LICENSE_CHECKS } from './checks/license.ts';
import { MACHINE_CHECKS } from './checks/machine.ts';
import { SERVER_CHECKS } from './checks/server.ts';
import { TOKENS_CHECK } from './checks/tokens.ts';
import { NOTIFICATIONS_CHECK } from './checks/notifications.ts';
import { DATABASE_SIZE_CHECK } from './checks/database-size.ts';
import { factsOf, type Machine } from './machine-facts.ts';

export interface Diagnosis {
  readonly status: 'ok' | 'warn' | 'fail';
  readonly checks: readonly CheckResult[];
}

export const CHECKS = [
  ...MACHINE_CHECKS,
  ...LICENSE_CHECKS,
  ...SERVER_CHECKS,
  ...DAEMON_CHECKS,
] as const;

/** Checks of the server that an administrator runs. */
export const ADMINISTRATOR_CHECKS = [DATABASE_SIZE_CHECK, NOTIFICATIONS_CHECK, TOKENS_CHECK];

/** Runs all checks. It changes nothing, and leaves no files. */
export async function examine(machine: Machine): Promise<Diagnosis> {
  const wanted = machine.administrator ? [...CHECKS, ...ADMINISTRATOR_CHECKS] : CHECKS;
  const checks = await runChecks(wanted, factsOf(machine));
  return { status: worstStatus(checks), checks };
}
