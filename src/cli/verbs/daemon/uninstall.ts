import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'remove the service of the daemon',
  description: 'Stops and removes the service that `daemon install` created.',
  options: {
    system: {
      description: 'remove the service of the machine instead of this user; requires root',
    },
  },
  examples: ['daemon uninstall', 'daemon uninstall --system'],
  async run({ io, message }, _args, { system }) {
    const { serviceManager } = await import('../../../../daemon/service-unit.ts');
    const { uninstallService } = await import('../../service.ts');
    const manager = serviceManager(process.platform, system ? 'system' : 'user', io.env);
    const { removed, untold } = await uninstallService(manager);
    if (untold !== undefined) message(untold);
    const { path } = manager;
    return {
      data: { removed, path },
      show: (out) => out.line(removed ? `${path} is removed.` : `${path} does not exist.`),
    };
  },
});
