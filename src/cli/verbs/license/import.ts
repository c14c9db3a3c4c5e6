import { licenseFiles } from '../../../gate/license-files.ts';
import { formatValidity, readImport } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'put a lease that was brought into its place',
  description:
    'Stores a lease on a machine without a network. The lease must verify, be for this machine and its installation, work, and be no worse than the present one. A file that is refused changes nothing.',
  arguments: {
    file: {
      description: 'what `identity leases issue` wrote: lease with keyset, or lease alone',
      complete: 'file',
    },
  },
  options: {
    keyset: {
      value: 'file',
      description:
        'keys that you trust, which replace those of this machine (default: those of this machine, and those in the file if this machine trusts them or has neither keys nor a lease)',
      complete: 'file',
    },
    replace: {
      description:
        'accept a lease of another installation or issuer, to which this machine then belongs',
    },
  },
  examples: ['license import lease.json', 'license import lease.json --keyset lease.json'],
  async run({ cwd, settings, io }, { file }, { keyset, replace }) {
    const { importLease } = await import('../../../../daemon/offline.ts');
    const files = licenseFiles(settings.home, io.env);
    const brought = await readImport(cwd, file, keyset);
    const { claims, by, key_ids, isNew } = await importLease(files, brought, Date.now(), {
      replace,
    });
    const { lease_id, deployment_id, entitlements, expires_at, grace_ends_at } = claims;
    return {
      data: {
        imported: isNew,
        lease_id,
        deployment_id,
        entitlements,
        expires_at,
        grace_ends_at,
        file: files.lease,
        verified_by: by,
        key_ids,
      },
      show(out) {
        if (!isNew) out.line(`${files.lease} is this lease already.`);
        out.line(`${files.lease} ${formatValidity(claims)}.`);
        out.line(`It licenses ${entitlements.join(', ') || 'no features'}.`);
        if (by === 'machine') return;
        const whose = by === 'named' ? 'that you named' : 'in that file, as this machine had none';
        out.line(`Leases are good by the keys ${whose}: ${key_ids.join(', ')}.`);
      },
    };
  },
});
