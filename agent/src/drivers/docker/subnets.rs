//! Where the networks of instances are: small ones, side by side in a pool of their own. The engine's own pools are cut into so
//! few and large ones that a node would run out of them after some thirty instances.

use std::fmt;
use std::fs;
use std::net::Ipv4Addr;
use std::str::FromStr;

use bollard::errors::Error;
use bollard::models::{Ipam, IpamConfig, NetworkCreateRequest};
use uuid::Uuid;

use super::{Docker, fault};
use crate::drivers::DriverFault;

/// Every network has so many leading bits: thirteen addresses for containers, and the node's own.
const PREFIX: u8 = 28;
/// So often another is tried where the engine says that one is taken.
const TRIES: usize = 16;
/// What the kernel knows the way to, the engine's own bridges among it.
const ROUTES: &str = "/proc/net/route";

/// Addresses that share their leading bits, such as `10.213.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    first: u32,
    prefix: u8,
}

impl Subnet {
    /// Four thousand networks, where hardly anybody has one.
    pub const POOL: Subnet = Subnet { first: u32::from_be_bytes([10, 213, 0, 0]), prefix: 16 };

    /// How many networks fit here that this machine has no other way to, and how many fit at all.
    pub fn room(self) -> (usize, usize) {
        let taken = routes(&fs::read_to_string(ROUTES).unwrap_or_default());
        self.room_beside(&taken)
    }

    fn room_beside(self, taken: &[Subnet]) -> (usize, usize) {
        let all = || self.networks(Uuid::nil());
        (all().filter(|one| !taken.iter().any(|other| one.overlaps(*other))).count(), all().count())
    }

    /// The node's own address is the first; said, because not every engine tells one that it chose itself.
    fn config(self) -> IpamConfig {
        let gateway = Ipv4Addr::from_bits(self.first + 1).to_string();
        IpamConfig { subnet: Some(self.to_string()), gateway: Some(gateway), ..IpamConfig::default() }
    }

    fn overlaps(self, other: Subnet) -> bool {
        let mask = mask(self.prefix.min(other.prefix));
        self.first & mask == other.first & mask
    }

    /// The networks that fit, from one that depends on the instance: two that are made at once hardly meet.
    fn networks(self, instance: Uuid) -> impl Iterator<Item = Subnet> {
        let count = 1_u32.checked_shl(u32::from(PREFIX.saturating_sub(self.prefix))).unwrap_or(1);
        // The last bytes of an id are its random ones.
        let [.., a, b, c, d] = *instance.as_bytes();
        let start = u32::from_be_bytes([a, b, c, d]) % count;
        let at = move |step: u32| self.first + ((start + step) % count) * (1 << (32 - PREFIX));
        (0..count).map(move |step| Subnet { first: at(step), prefix: PREFIX })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.first), self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Subnet, String> {
        let wrong = || format!("{text:?} is no subnet such as 10.213.0.0/16");
        let (first, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let (first, prefix): (Ipv4Addr, u8) =
            (first.parse().map_err(|_| wrong())?, prefix.parse().map_err(|_| wrong())?);
        let subnet = Subnet { first: first.to_bits(), prefix };
        match subnet.first & !mask(prefix.min(32)) {
            0 if (8..=PREFIX).contains(&prefix) => Ok(subnet),
            0 => Err(format!("{text:?} must have between 8 and {PREFIX} leading bits")),
            _ => Err(wrong()),
        }
    }
}

impl Docker {
    /// In the first place of the pool that nobody has; in one of the engine's own choice where there is none left.
    pub(super) async fn create_in_pool(
        &self,
        instance: Uuid,
        request: NetworkCreateRequest,
    ) -> Result<(), DriverFault> {
        let taken = routes(&fs::read_to_string(ROUTES).unwrap_or_default());
        let free = self.pool.networks(instance).filter(|one| !taken.iter().any(|other| one.overlaps(*other)));
        for subnet in free.take(TRIES).map(Some).chain([None]) {
            let ipam = subnet.map(|subnet| Ipam { config: Some(vec![subnet.config()]), ..Ipam::default() });
            let request = NetworkCreateRequest { ipam, ..request.clone() };
            match self.client.create_network(request).await {
                Ok(_) => return Ok(()),
                Err(error) if subnet.is_some() && is_taken(&error) => {}
                Err(error) => return Err(fault("make the network", &error)),
            }
        }
        Ok(())
    }
}

/// The engine tells it by words alone.
fn is_taken(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { message, .. } if message.contains("overlaps"))
}

/// The kernel's table: a line for each, addresses as it has them in memory. The way to everywhere else is no place of its own.
fn routes(table: &str) -> Vec<Subnet> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::from_be);
        let (first, mask) = (number(words.nth(1)?)?, number(words.nth(5)?)?);
        Some(Subnet { first, prefix: u8::try_from(mask.leading_ones()).ok()? })
    };
    table.lines().skip(1).filter_map(line).filter(|subnet| subnet.prefix > 0).collect()
}

fn mask(prefix: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
        eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\n\
        docker0\t0000D50A\t00000000\t0001\t0\t0\t0\tF0FFFFFF\n\
        eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\n";

    fn subnet(text: &str) -> Subnet {
        text.parse().unwrap()
    }

    #[test]
    fn the_kernels_table_is_read() {
        let read: Vec<String> = routes(TABLE).iter().map(Subnet::to_string).collect();
        assert_eq!(read, ["10.213.0.0/28", "172.17.0.0/16"]);
        assert!(routes(TABLE)[0].overlaps(Subnet::POOL) && !routes(TABLE)[1].overlaps(Subnet::POOL));
    }

    #[test]
    fn a_pool_is_cut_into_networks_that_do_not_overlap_and_each_comes_once() {
        let mut all: Vec<u32> =
            subnet("10.213.0.0/24").networks(Uuid::from_u128(7)).map(|one| one.first).collect();
        assert_eq!((all.len(), Ipv4Addr::from_bits(all[0]).to_string()), (16, "10.213.0.112".to_owned()));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 16), "{all:?}");
        assert_eq!(Subnet::POOL.networks(Uuid::nil()).count(), 4096);
    }

    #[test]
    fn what_a_machine_has_another_way_to_is_no_room() {
        let room = |pool: &str, taken: &[&str]| {
            subnet(pool).room_beside(&taken.iter().map(|one| subnet(one)).collect::<Vec<_>>())
        };
        assert_eq!(room("10.213.0.0/24", &["172.17.0.0/16"]), (16, 16));
        assert_eq!(
            room("10.213.0.0/24", &["10.213.0.16/28"]),
            (15, 16),
            "a network of ours, or of anybody's"
        );
        assert_eq!(room("10.213.0.0/24", &["10.0.0.0/8"]), (0, 16), "as behind a tunnel to a whole company");
    }

    #[test]
    fn a_pool_that_makes_no_sense_is_refused() {
        for wrong in ["10.0.0.0", "10.0.0.0/29", "10.0.0.0/7", "10.0.0.1/16", "ten/16", "10.0.0.0/99"] {
            assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
        }
    }
}
