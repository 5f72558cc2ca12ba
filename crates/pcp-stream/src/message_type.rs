//! The 27 message types of the protocol: numbers, names and who may send which to whom.

/// How many message types there are; the discriminants are `0..MESSAGE_TYPE_COUNT`.
pub const MESSAGE_TYPE_COUNT: u32 = 27;

/// What a party to a connection is, as far as the direction of messages goes.
///
/// A confirmer is a client whose principal carries the confirmer flag; it may send whatever a client may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A program that asks, such as the command line.
    Client,
    /// A client through which a person confirms.
    Confirmer,
    /// The daemon.
    Daemon,
    /// A Tier-1 application that serves its own socket.
    App,
}

/// Directions a message type may travel in; one bit each.
mod way {
    pub(super) const C_TO_D: u8 = 1;
    pub(super) const D_TO_C: u8 = 2;
    pub(super) const D_TO_A: u8 = 4;
    pub(super) const A_TO_D: u8 = 8;
    pub(super) const D_TO_CONFIRMER: u8 = 16;
    pub(super) const CONFIRMER_TO_D: u8 = 32;
    pub(super) const ANY: u8 = C_TO_D | D_TO_C | D_TO_A | A_TO_D | D_TO_CONFIRMER | CONFIRMER_TO_D;
}

/// One table, so that number, names and direction of a type cannot drift apart.
macro_rules! message_types {
    ($( $(#[doc = $doc:literal])* $variant:ident = $number:literal, $name:literal, $ways:expr; )*) => {
        /// What a frame carries. The discriminants are the wire's and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum StreamMessageType {
            $( $(#[doc = $doc])* $variant = $number, )*
        }

        impl StreamMessageType {
            /// Every type, in the order of the discriminants.
            pub const ALL: [Self; MESSAGE_TYPE_COUNT as usize] = [ $( Self::$variant, )* ];

            /// The name in the documents, such as `ExecuteRequest`.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $( Self::$variant => stringify!($variant), )* }
            }

            /// The value of a payload's member `type`, such as `execute_request`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// The type with this discriminant, if there is one.
            #[must_use]
            pub const fn from_discriminant(discriminant: u32) -> Option<Self> {
                match discriminant { $( $number => Some(Self::$variant), )* _ => None }
            }

            const fn ways(self) -> u8 {
                match self { $( Self::$variant => $ways, )* }
            }
        }
    };
}

message_types! {
    /// Are you there? Empty payload; answered by [`Self::Pong`].
    Ping = 0, "ping", way::C_TO_D;
    /// I am. Empty payload.
    Pong = 1, "pong", way::D_TO_C;
    /// A request was not served, and why.
    ErrorResponse = 2, "error_response", way::ANY;
    /// Look at an application again.
    DetectRequest = 3, "detect_request", way::C_TO_D;
    /// What detection found.
    DetectResponse = 4, "detect_response", way::D_TO_C;
    /// Execute an intent; acknowledged by [`Self::ExecuteResponse`], ended by [`Self::CapabilityResultMsg`].
    ExecuteRequest = 5, "execute_request", way::C_TO_D;
    /// How far an execution has come.
    ExecuteResponse = 6, "execute_response", way::D_TO_C;
    /// Which capabilities or applications are there?
    RegistryQuery = 7, "registry_query", way::C_TO_D;
    /// Rows of the registry.
    RegistryResponse = 8, "registry_response", way::D_TO_C;
    /// Deliver events from now on.
    SubscribeEvents = 9, "subscribe_events", way::C_TO_D | way::D_TO_A;
    /// Deliver no more events.
    UnsubscribeEvents = 10, "unsubscribe_events", way::C_TO_D;
    /// A subscription was made or ended.
    SubscriptionAck = 11, "subscription_ack", way::D_TO_C | way::A_TO_D;
    /// One event.
    PushEvent = 12, "push_event", way::D_TO_C | way::A_TO_D;
    /// Events up to a number have been dealt with.
    EventAck = 13, "event_ack", way::C_TO_D;
    /// Send a manifest.
    GetManifest = 14, "get_manifest", way::D_TO_A | way::C_TO_D;
    /// A manifest.
    ManifestResponse = 15, "manifest_response", way::D_TO_C | way::A_TO_D;
    /// Carry out a capability.
    InvokeCapability = 16, "invoke_capability", way::D_TO_A;
    /// How a capability ended.
    CapabilityResultMsg = 17, "capability_result_msg", way::A_TO_D | way::D_TO_C;
    /// Would these parameters do?
    ValidateParamsMsg = 18, "validate_params_msg", way::D_TO_A;
    /// Whether they would.
    ValidateParamsResponse = 19, "validate_params_response", way::A_TO_D;
    /// Read-only question about state.
    QueryState = 20, "query_state", way::D_TO_A | way::C_TO_D;
    /// The state asked for.
    StateResponse = 21, "state_response", way::D_TO_C | way::A_TO_D;
    /// End.
    AppShutdown = 22, "app_shutdown", way::D_TO_A;
    /// Ending.
    AppShutdownAck = 23, "app_shutdown_ack", way::A_TO_D;
    /// A person has to decide.
    ConfirmationRequest = 24, "confirmation_request", way::D_TO_CONFIRMER;
    /// What the person decided.
    ConfirmationResponse = 25, "confirmation_response", way::CONFIRMER_TO_D;
    /// Stop an operation that has not taken effect.
    CancelRequest = 26, "cancel_request", way::C_TO_D;
}

impl StreamMessageType {
    /// The number on the wire.
    #[must_use]
    pub const fn discriminant(self) -> u32 {
        self as u32
    }

    /// Whether `from` may send this type to `to`.
    ///
    /// What arrives against its direction is answered by an [`Self::ErrorResponse`] and never acted upon.
    #[must_use]
    pub const fn travels(self, from: Role, to: Role) -> bool {
        let mask = match (from, to) {
            (Role::Client, Role::Daemon) => way::C_TO_D,
            (Role::Confirmer, Role::Daemon) => way::C_TO_D | way::CONFIRMER_TO_D,
            (Role::Daemon, Role::Client) => way::D_TO_C,
            (Role::Daemon, Role::Confirmer) => way::D_TO_C | way::D_TO_CONFIRMER,
            (Role::Daemon, Role::App) => way::D_TO_A,
            (Role::App, Role::Daemon) => way::A_TO_D,
            _ => 0,
        };
        self.ways() & mask != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_27_types_and_no_more() {
        assert_eq!(StreamMessageType::ALL.len(), 27);
        for (number, message_type) in (0u32..).zip(StreamMessageType::ALL) {
            assert_eq!(message_type.discriminant(), number);
            assert_eq!(StreamMessageType::from_discriminant(number), Some(message_type));
        }
        for unknown in (27..=255).chain([u32::MAX]) {
            assert_eq!(StreamMessageType::from_discriminant(unknown), None);
        }
    }

    #[test]
    fn a_name_is_the_title_in_snake_case() {
        for message_type in StreamMessageType::ALL {
            let mut snake = String::new();
            for (index, letter) in message_type.title().char_indices() {
                if letter.is_uppercase() && index > 0 {
                    snake.push('_');
                }
                snake.push(letter.to_ascii_lowercase());
            }
            assert_eq!(message_type.name(), snake);
        }
    }

    #[test]
    fn types_travel_only_as_the_direction_table_says() {
        use Role::{App, Client, Confirmer, Daemon};
        let c_d = [0, 2, 3, 5, 7, 9, 10, 13, 14, 20, 26].as_slice();
        let d_c = &[1, 2, 4, 6, 8, 11, 12, 15, 17, 21];
        let d_a = &[2, 9, 14, 16, 18, 20, 22];
        let a_d = &[2, 11, 12, 15, 17, 19, 21, 23];
        let confirmer_d = &[0, 2, 3, 5, 7, 9, 10, 13, 14, 20, 25, 26];
        let d_confirmer = &[1, 2, 4, 6, 8, 11, 12, 15, 17, 21, 24];
        let table: [(Role, Role, &[u32]); 6] = [
            (Client, Daemon, c_d),
            (Daemon, Client, d_c),
            (Daemon, App, d_a),
            (App, Daemon, a_d),
            (Confirmer, Daemon, confirmer_d),
            (Daemon, Confirmer, d_confirmer),
        ];
        for from in [Client, Confirmer, Daemon, App] {
            for to in [Client, Confirmer, Daemon, App] {
                let allowed =
                    table.iter().find(|row| (row.0, row.1) == (from, to)).map_or(&[][..], |row| row.2);
                for message_type in StreamMessageType::ALL {
                    assert_eq!(
                        message_type.travels(from, to),
                        allowed.contains(&message_type.discriminant()),
                        "{message_type:?} from {from:?} to {to:?}"
                    );
                }
            }
        }
    }
}
