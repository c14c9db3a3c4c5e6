import { licenseFiles } from '../../license-files.ts';
import { readBrought } from '../license.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Puts a lease that somebody brought into its place, for a machine without a network. It is taken when it verifies, is for this machine, works, and is not worse than what is there; a file that is refused changes nothing.',
  arguments: {
    file: {
      description: 'what `identity leases issue` wrote: lease with keyset, or lease alone',
      complete: 'file',
    },
  },
  options: {
    keyset: {
      value: 'file',
      description: 'keys that verify it (default: those in the file, else those of this machine)',
      complete: 'file',
    },
  },
  examples: ['license import lease.json', 'license import lease.json --keyset license-keys.json'],
  async run({ cwd, settings, io }, { file }, { keyset }) {
    const { importLease } = await import('../../../daemon/offline.ts');
    const files = licenseFiles(settings.home, io.env);
    const brought = await readBrought(cwd, file, keyset);
    const { claims, isNew } = await importLease(files, brought, Date.now());
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
      },
      show(out) {
        if (!isNew) out.line(`${files.lease} is this lease already.`);
        out.line(`${files.lease} is good until ${expires_at}, with grace until ${grace_ends_at}.`);
        out.line(`It licenses ${entitlements.join(', ') || 'no features'}.`);
      },
    };
  },
});
