import type { HeldLease, RefusedFile } from '../../gate/license.ts';
import { leasesHere } from '../../gate/lease-use.ts';
import type { Check } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';

export const leaseUse: Check<Facts> = {
  code: 'lease_use',
  needs: ['lease_signature'],
  async run(facts) {
    const { files, machineHash, isRenewedByHand, product: own } = facts;
    const { leases } = await facts.license();
    // With the default, the lease may be for another program on this machine.
    const required = own?.isDefault === false ? own.name : undefined;
    const here = await leasesHere(files, leases, { product: required, machineHash });
    const lease = here.leases[0] ?? leases[0]!;
    const { product = null, binding = 'none' } = lease.claims;
    const evidence = { product, license_product: own?.name ?? null, binding };
    const [refused] = here.refused;
    if (here.leases.length > 0 || refused === undefined) {
      return { status: 'ok', summary: describe(lease, own?.name), evidence };
    }
    const { reason, detail } = refused;
    return {
      status: 'fail',
      summary: detail,
      evidence: { ...evidence, reason },
      remedy: remedyOf(reason, files.key, await isRenewedByHand()),
    };
  },
};

function describe({ claims }: Pick<HeldLease, 'claims'>, own: string | undefined): string {
  const { product, binding = 'none', device_thumbprint } = claims;
  const what = product === undefined ? 'every product' : `the product ${product}`;
  const where = {
    none: 'on every machine',
    device: `where the key of the device ${device_thumbprint} is`,
    machine: 'on this machine',
  }[binding];
  const isOther = product !== undefined && own !== undefined && product !== own;
  const note = isOther
    ? `; \`service-local server\` and \`service-local run\` need a lease for ${own}, the value of license_product`
    : '';
  return `for ${what} ${where}${note}`;
}

function remedyOf(reason: RefusedFile['reason'], key: string, isRenewedByHand: boolean): string {
  const enroll = isRenewedByHand
    ? `move ${key} away, make a request with \`service-local license export-request\`, and import the lease that comes back`
    : 'ask for a new enrollment code, and enroll this machine with `service-local license enroll`';
  const remedies: Partial<Record<RefusedFile['reason'], string>> = {
    no_device_key: `Put ${key} back, readable by this user. If there is no copy of it, ${enroll}.`,
    other_product:
      'Ask the issuer for a lease for this product, or set license_product to the product of the lease.',
    other_device: `If these files were copied from another machine, ${enroll}. If this is the same machine, put back the ${key} for which the lease was issued.`,
    other_machine: `If this installation has moved to this machine, or the operating system was installed again, ${enroll}. A second installation needs a license of its own.`,
  };
  return remedies[reason] ?? NO_MACHINE_ID;
}

const NO_MACHINE_ID =
  'On Linux, check that /etc/machine-id contains an id (`systemd-machine-id-setup` creates one), and that this user can read it. Containers need a license that is not bound to a machine: ask the issuer.';
