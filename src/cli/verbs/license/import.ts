import { licenseFiles } from '../../../gate/license-files.ts';
import { formatValidity, readImport } from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'store a lease on a machine without a network',
  description:
    'Stores a lease that was copied to this machine. The lease must verify, be valid now, belong to this machine and its installation, and be no worse than the current lease. A rejected file changes nothing.',
  arguments: {
    file: {
      description: 'file that `identity leases issue` wrote: a lease with or without a keyset',
      complete: 'file',
    },
  },
  options: {
    keyset: {
      value: 'file',
      description:
        'keys to trust, which replace the keys of this machine (default: the keys of this machine, and the keys in the file if this machine trusts them or has neither keys nor a lease)',
      complete: 'file',
    },
    replace: {
      description:
        'accept a lease of another installation or issuer, and make this machine part of it',
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
        if (!isNew) out.line(`${files.lease} already contains this lease.`);
        out.line(`${files.lease} ${formatValidity(claims)}.`);
        out.line(`It licenses ${entitlements.join(', ') || 'no features'}.`);
        if (by === 'machine') return;
        const whose =
          by === 'named' ? 'that you specified' : 'in that file, because there were none';
        out.line(`This machine trusts the keys ${whose}: ${key_ids.join(', ')}.`);
      },
    };
  },
});
