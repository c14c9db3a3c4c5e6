/**
 * The Pod Security Standard `restricted` (https://kubernetes.io/docs/concepts/security/pod-security-standards/),
 * including the rules of `baseline`. Returns the rules that a pod violates.
 */
interface SecurityContext {
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly procMount?: string;
  readonly sysctls?: readonly unknown[];
  readonly seccompProfile?: { readonly type: string };
  readonly capabilities?: { readonly drop?: readonly string[]; readonly add?: readonly string[] };
}

interface Container {
  readonly name: string;
  readonly securityContext?: SecurityContext;
  readonly ports?: readonly { readonly hostPort?: number }[];
}

export interface PodSpec {
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly securityContext?: SecurityContext;
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Readonly<Record<string, unknown>>[];
}

const VOLUMES = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
]);

export function podSecurityFaults(pod: PodSpec): string[] {
  const whole = pod.securityContext ?? {};
  const faults: string[] = [];
  const rule = (isMet: boolean, text: string): void => {
    if (!isMet) faults.push(text);
  };
  rule(!pod.hostNetwork && !pod.hostPID && !pod.hostIPC, 'host namespaces');
  rule((whole.sysctls ?? []).length === 0, 'sysctls');
  for (const volume of pod.volumes ?? []) {
    const types = Object.keys(volume).filter((key) => key !== 'name');
    rule(
      types.every((type) => VOLUMES.has(type)),
      `volume of type ${types.join()}`,
    );
  }
  for (const { name, securityContext: own = {}, ports = [] } of [
    ...pod.containers,
    ...(pod.initContainers ?? []),
  ]) {
    const effective = { ...whole, ...own };
    rule(
      ports.every(({ hostPort }) => hostPort === undefined),
      `${name}: host ports`,
    );
    rule(own.privileged !== true, `${name}: privileged`);
    rule((own.procMount ?? 'Default') === 'Default', `${name}: procMount`);
    rule(own.allowPrivilegeEscalation === false, `${name}: privilege escalation`);
    rule(effective.runAsNonRoot === true, `${name}: runAsNonRoot`);
    rule(effective.runAsUser !== 0, `${name}: runs as root`);
    rule(
      ['RuntimeDefault', 'Localhost'].includes(effective.seccompProfile?.type ?? ''),
      `${name}: seccomp`,
    );
    rule(own.capabilities?.drop?.includes('ALL') === true, `${name}: capabilities`);
    rule(
      (own.capabilities?.add ?? []).every((each) => each === 'NET_BIND_SERVICE'),
      `${name}: added capabilities`,
    );
  }
  return faults;
}
