//! An instance's own network, as the node sees it: where the node itself is reached on it, and who else may be there.

use std::net::IpAddr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The node's own address.
    pub gateway: IpAddr,
    /// How many leading bits all addresses of the network share.
    pub prefix: u8,
}

impl Network {
    /// From a gateway such as `172.18.0.1` and a subnet such as `172.18.0.0/16`.
    pub fn read(gateway: &str, subnet: &str) -> Option<Network> {
        let (gateway, (_, prefix)) = (gateway.parse().ok()?, subnet.split_once('/')?);
        Some(Network { gateway, prefix: prefix.parse().ok()? })
    }

    /// Whether somebody with this address is on the network.
    pub fn covers(&self, peer: IpAddr) -> bool {
        let (own, other, width) = match (self.gateway, peer.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => {
                (u128::from(own.to_bits()), u128::from(peer.to_bits()), 32_u32)
            }
            (IpAddr::V6(own), IpAddr::V6(peer)) => (own.to_bits(), peer.to_bits(), 128),
            _ => return false,
        };
        let free = width.saturating_sub(u32::from(self.prefix));
        own.checked_shr(free).unwrap_or(0) == other.checked_shr(free).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_are_on_a_network() {
        let network = Network::read("172.18.0.1", "172.18.0.0/16").unwrap();
        for (peer, there) in
            [("172.18.0.2", true), ("::ffff:172.18.9.9", true), ("172.19.0.2", false), ("::1", false)]
        {
            assert_eq!(network.covers(peer.parse().unwrap()), there, "{peer}");
        }
        assert_eq!(Network::read("172.18.0.1", "all"), None);
    }
}
