import {
  DNS_PORTS,
  PUBLIC_ADDRESSES,
  portOf,
  type KubernetesObject,
} from '../kubernetes/manifests.ts';
import { jobName, type SearchJobPlan, type SearchPlace } from './search-job.ts';

/** Label that Kubernetes gives to the pods of a Job. */
export const JOB_LABEL = 'batch.kubernetes.io/job-name';
const HTTPS_PORT = 443;
/** EKS Pod Identity, which gives pods the credentials of a role. */
const POD_IDENTITY = { ipBlock: { cidr: '169.254.170.23/32' } };

/**
 * A policy under which the pods of a Job reach DNS and the object store only, and nothing at all if the
 * store is a volume. The cluster deletes it together with the Job.
 *
 * @param uid of the Job, which then owns the policy; undefined before the Job exists
 */
export function searchPolicy(plan: SearchJobPlan, uid: string | undefined): KubernetesObject {
  const name = jobName(plan);
  const { namespace, searches } = plan.definition;
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name, uid };
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace, ...(uid !== undefined && { ownerReferences: [owner] }) },
    spec: {
      podSelector: { matchLabels: { [JOB_LABEL]: name } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [],
      egress: searches.claim === undefined ? egressTo(searches) : [],
    },
  };
}

function egressTo({ endpoint, service_account }: SearchPlace): object[] {
  const port = endpoint === undefined ? HTTPS_PORT : portOf(endpoint);
  // Pods assume roles at the token service, whose address differs from the endpoint.
  const ports = service_account === undefined ? [port] : [...new Set([port, HTTPS_PORT])];
  return [
    { ports: DNS_PORTS },
    { ports: ports.map((one) => ({ port: one, protocol: 'TCP' })), to: PUBLIC_ADDRESSES },
    ...(service_account === undefined
      ? []
      : [{ ports: [{ port: 80, protocol: 'TCP' }], to: [POD_IDENTITY] }]),
  ];
}
