/**
 * Applies the withdrawals that the audit log recorded after a backup to the restored database. It
 * does not apply grants; an administrator repeats them.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Db } from '../storage/tables.ts';
import { detailsOf, type AuditEntry } from './audit.ts';
import { parseRow } from './registry.ts';

/** Numbers of audit entries, by action. */
export type Counts = Readonly<Record<string, number>>;

export interface ReappliedAudit {
  readonly applied: Counts;
  readonly not_applied: Counts;
  /** Highest version of the keyset that the entries name; 0 if they name none. */
  readonly keyset_version: number;
}

/** Applies an entry. @returns false if nothing in the database matches. */
type Rule = (tx: Db, entry: AuditEntry) => Promise<boolean>;

const RULES: Readonly<Record<string, Rule>> = {
  'admin.identity.license.revoke': revoke,
  'admin.identity.contract.update': reduceContract,
  'admin.identity.plan.update': reducePlan,
  'admin.identity.device.revoke': revokeDevice,
  'identity.device.replace': revokeDevice,
  'admin.identity.key.retire': retireKey,
  'admin.identity.administrator.disable': disableAdministrator,
  'admin.identity.administrator.reset': disableAdministrator,
  'admin.identity.administrator.login': endRecoveryCodes,
  'admin.identity.administrator.step_up': endRecoveryCodes,
  'admin.identity.token.revoke': revokeToken,
  'admin.identity.passkey.delete': deletePasskey,
};

/** Entries without an effect that a restore could forget, or whose effect every restore has. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'admin.identity.administrator.login',
  'admin.identity.administrator.login_failed',
  'admin.identity.administrator.step_up',
  'admin.identity.device.enrol_code',
  'admin.identity.session.create',
  'admin.identity.session.end',
  'alert.raised',
  'bots.deploy_stop',
  'bots.halt_all',
  'identity.license.clone_suspected',
  'server.clock.set_back',
  'server.database.adopt',
  'server.database.restore',
]);

const UPDATE = /^admin\.identity\.(contract|plan)\.update$/;

/** @param handled actions that the caller applies itself. */
export async function reapplyAudit(
  tx: Db,
  entries: readonly AuditEntry[],
  handled: ReadonlySet<string>,
): Promise<ReappliedAudit> {
  const applied: Record<string, number> = {};
  const not_applied: Record<string, number> = {};
  const count = (counts: Record<string, number>, { action }: AuditEntry): void => {
    counts[action] = (counts[action] ?? 0) + 1;
  };
  for (const entry of lasting(entries)) {
    const isApplied = (await RULES[entry.action]?.(tx, entry)) ?? false;
    if (isApplied) count(applied, entry);
    // An update may be applied in part.
    const isLacking = UPDATE.test(entry.action) ? await isUpdateLacking(tx, entry) : !isApplied;
    if (isLacking && !WITHOUT_EFFECT.has(entry.action) && !handled.has(entry.action)) {
      count(not_applied, entry);
    }
  }
  const versions = entries.flatMap(({ action, details }) => {
    if (action === 'admin.identity.root.store') return [Number(details['keyset_version'])];
    return action === 'admin.identity.key.announce' ? [Number(details['version'])] : [];
  });
  return { applied, not_applied, keyset_version: Math.max(0, ...versions) };
}

/**
 * Returns the net result of several changes: leaves out the revocation of an installation that was
 * reinstated later, and keeps the last value of each field of a contract or plan.
 */
function lasting(entries: readonly AuditEntry[]): readonly AuditEntry[] {
  const last = new Map<string, AuditEntry>();
  const others: AuditEntry[] = [];
  for (const entry of entries) {
    const { action, target } = entry;
    const isOfInstallation =
      action === 'admin.identity.deployment.reinstate' ||
      (action === 'admin.identity.license.revoke' && target.startsWith('deployment:'));
    if (isOfInstallation) last.set(target, entry);
    else if (UPDATE.test(action)) last.set(target, mergeUpdates(last.get(target), entry));
    else others.push(entry);
  }
  return [...others, ...last.values()].sort((a, b) => a.seq - b.seq);
}

function mergeUpdates(before: AuditEntry | undefined, entry: AuditEntry): AuditEntry {
  const after = { ...objectOf(before?.details['after']), ...objectOf(entry.details['after']) };
  return { ...entry, details: { after } };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** `lease:ID` → `ID` */
function idOf({ target }: AuditEntry): string {
  return target.slice(target.indexOf(':') + 1);
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function revocationOf({ recorded_at, actor, details }: AuditEntry) {
  return {
    revoked_at: Date.parse(recorded_at),
    revoked_by: actor,
    revoked_reason: textOf(details['reason']) ?? 'revoked after the backup',
  };
}

async function revoke(tx: Db, entry: AuditEntry): Promise<boolean> {
  const id = idOf(entry);
  if (entry.target.startsWith('lease:')) return revokeMachines(tx, entry, id);
  const { numUpdatedRows } = await tx
    .updateTable('deployments')
    .set(revocationOf(entry))
    .where('deployment_id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Revokes the known leases of the machines, and the keys of machines without a known lease. */
async function revokeMachines(tx: Db, entry: AuditEntry, leaseId: string): Promise<boolean> {
  const revocation = revocationOf(entry);
  const lineage = textOf(entry.details['lineage_id']) ?? leaseId;
  const { numUpdatedRows } = await tx
    .updateTable('license_leases')
    .set(revocation)
    .where('revoked_at', 'is', null)
    .where((is) => is.or([is('lease_id', '=', leaseId), is('lineage_id', '=', lineage)]))
    .executeTakeFirst();
  let changed = numUpdatedRows;
  for (const deviceId of textsOf(entry.details['device_ids'])) {
    changed += await revokeMachine(tx, revocation, deviceId);
  }
  return changed > 0n;
}

async function revokeMachine(
  tx: Db,
  revocation: ReturnType<typeof revocationOf>,
  deviceId: string,
): Promise<bigint> {
  const leases = await tx
    .updateTable('license_leases')
    .set(revocation)
    .where('device_id', '=', deviceId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  const revoked = await tx
    .selectFrom('license_leases')
    .select('lease_id')
    .where('device_id', '=', deviceId)
    .where('revoked_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  if (revoked !== undefined) return leases.numUpdatedRows;
  const device = await tx
    .updateTable('devices')
    .set(revocation)
    .where('device_id', '=', deviceId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return device.numUpdatedRows;
}

async function reduceContract(tx: Db, entry: AuditEntry): Promise<boolean> {
  const id = idOf(entry);
  const row = await tx
    .selectFrom('contracts')
    .selectAll()
    .where('contract_id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return false;
  const after = objectOf(entry.details['after']);
  const end = Date.parse(textOf(after['ends_at']) ?? '');
  const ends_at = Number.isNaN(end) ? row.ends_at : Math.min(row.ends_at, end);
  const entitlements = commonTo(row.entitlements, after['entitlements']);
  if (ends_at === row.ends_at && entitlements === row.entitlements) return false;
  const reduced = { ends_at, entitlements };
  await tx.updateTable('contracts').set(reduced).where('contract_id', '=', id).execute();
  return true;
}

async function reducePlan(tx: Db, entry: AuditEntry): Promise<boolean> {
  const id = idOf(entry);
  const row = await tx
    .selectFrom('plans')
    .select('entitlements')
    .where('plan_id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return false;
  const after = objectOf(entry.details['after']);
  const entitlements = commonTo(row.entitlements, after['entitlements']);
  if (entitlements === row.entitlements) return false;
  await tx.updateTable('plans').set({ entitlements }).where('plan_id', '=', id).execute();
  return true;
}

/** Whether the contract or plan differs from what it was after the update. */
async function isUpdateLacking(tx: Db, entry: AuditEntry): Promise<boolean> {
  const id = idOf(entry);
  const row = entry.target.startsWith('contract:')
    ? await tx.selectFrom('contracts').selectAll().where('contract_id', '=', id).executeTakeFirst()
    : await tx.selectFrom('plans').selectAll().where('plan_id', '=', id).executeTakeFirst();
  const has = row && detailsOf(parseRow(row));
  return Object.entries(objectOf(entry.details['after'])).some(
    ([name, value]) => !isDeepStrictEqual(has?.[name], value),
  );
}

/** The names of a JSON list that a later list still has; the same text if that is all of them. */
function commonTo(list: string, later: unknown): string {
  if (!Array.isArray(later)) return list;
  const names = JSON.parse(list) as string[];
  const left = names.filter((name) => later.includes(name));
  return left.length === names.length ? list : JSON.stringify(left);
}

async function revokeDevice(tx: Db, entry: AuditEntry): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('devices')
    .set(revocationOf(entry))
    .where('device_id', 'in', [idOf(entry), ...textsOf(entry.details['revoked_along'])])
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

async function retireKey(tx: Db, entry: AuditEntry): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('signing_keys')
    .set({ status: 'retired', retired_at: Date.parse(entry.recorded_at) })
    .where('public_key_id', '=', idOf(entry))
    .where('status', '<>', 'retired')
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Also applied for a reset, because the backup contains the former password and second factor. */
async function disableAdministrator(tx: Db, entry: AuditEntry): Promise<boolean> {
  const id = idOf(entry);
  const at = Date.parse(entry.recorded_at);
  const { numUpdatedRows } = await tx
    .updateTable('administrators')
    .set((is) => ({ disabled_at: is.fn.coalesce('disabled_at', is.val(at)) }))
    .where('administrator_id', '=', id)
    .executeTakeFirst();
  await tx
    .updateTable('api_tokens')
    .set({ revoked_at: at })
    .where('administrator_id', '=', id)
    .where('revoked_at', 'is', null)
    .execute();
  await tx.deleteFrom('passkeys').where('administrator_id', '=', id).execute();
  return numUpdatedRows > 0n;
}

/** The log does not name the used code, so all codes of the administrator end. */
async function endRecoveryCodes(tx: Db, entry: AuditEntry): Promise<boolean> {
  if (entry.details['second_factor'] !== 'recovery_code') return false;
  const { numDeletedRows } = await tx
    .deleteFrom('recovery_codes')
    .where('administrator_id', '=', entry.actor.replace(/^administrator:/, ''))
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

async function revokeToken(tx: Db, entry: AuditEntry): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('api_tokens')
    .set({ revoked_at: Date.parse(entry.recorded_at) })
    .where('token_id', '=', idOf(entry))
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

async function deletePasskey(tx: Db, entry: AuditEntry): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('passkeys')
    .where('passkey_id', '=', idOf(entry))
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
